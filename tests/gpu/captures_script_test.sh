#!/bin/bash
# tools/gpu-captures.sh with a program that pretends: the order and the batch sizes of the captures, a second call that goes on, and its help.
# Usage: tests/gpu/captures_script_test.sh
. "$(dirname "$0")/../setup.sh"
script=$source_folder/tools/gpu-captures.sh

bash "$script" --help >out 2>&1 || fail "help: exit code"
says "tools/gpu-captures.sh [OUT]"
grep -q '^set' out && fail "help: code is printed"

mkdir bin
export PATH=$work/bin:$PATH
printf '#!/bin/sh\necho "GPU 0: fake"\n' >bin/nvidia-smi
# The first call loses the GPU at mesh-2k and has no time for alexnet.
cat >stepcast-gpu <<'END'
#!/bin/sh
echo "$*" >>"$ASKED"
case "$*" in
  *"--models mesh-2k"*) [ -e "$ASKED.lost" ] || { touch "$ASKED.lost"; exit 4; } ;;
  *"--models alexnet"*) [ -e "$ASKED.late" ] || { touch "$ASKED.late"; exit 3; } ;;
esac
# capture-all --precision P --layout L --models M --batches B --seconds S -o FOLDER
for batch in $(echo "$9" | tr , ' '); do touch "${13}/$7-b$batch-$3.yaml"; done
END
chmod +x bin/nvidia-smi stepcast-gpu
export STEPCAST_GPU=$work/stepcast-gpu ASKED=$work/asked PAIRS="f32 nchw"
bash "$script" results >out 2>&1
[ $? -eq 3 ] || fail "first call: exit code"
says "capture-mesh-2k-f32: done"
says "capture-alexnet-f32: unfinished"
says "traces: 30 of 33"
bash "$script" results.tar.gz >out 2>&1
[ $? -eq 0 ] || fail "second call: exit code"
says "capture-mesh-1k-f32: done by an earlier call"
says "traces: 33 of 33"
order=$(sed -n 's/.*--models \([^ ]*\) .*/\1/p' asked | uniq | tr '\n' ' ')
[ "$order" = "mesh-1k mesh-2k 3dgan gan-generator gan-discriminator chen-huo-dnn chen-huo-dblstm seide-dnn nnlo-gru alexnet distbelief-speech alexnet " ] ||
  fail "order: $order"
for model in $order; do [ -e "$source_folder/models/$model.yaml" ] || fail "there is no network $model"; done
tar tzf results.tar.gz | grep -qx 'results/traces/alexnet-b64-f32.yaml' || fail "the archive lacks a trace"

end_test

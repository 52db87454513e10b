#!/bin/bash
# tools/gpu-first-contact.sh: without a GPU one line within a second and exit code 2; on a fake device its stages, the
# archive after each of them, on TERM and as the start of the next call, and its last words.
# Usage: tests/gpu/first_contact_test.sh
. "$(dirname "$0")/../setup.sh"
script=$source_folder/tools/gpu-first-contact.sh

mkdir bin
export PATH=$work/bin:$PATH
# Hangs, and TERM does not end it, as beside a broken driver.
printf '#!/bin/sh\ntrap "" TERM\nsleep 10\ntouch answered\n' >bin/nvidia-smi
printf '#!/bin/sh\nexit 1\n' >bin/python3
chmod +x bin/*
if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  # The script takes 0.8 s of waiting and its own processor time, which other programs of the machine change little.
  TIMEFORMAT='%U %S'
  { time bash "$script" results >out 2>&1; } 2>spent
  [ $? -eq 2 ] || fail "no GPU: exit code"
  [ -e answered ] && fail "no GPU: it waited for an nvidia-smi that hangs"
  awk '{ exit $1 + $2 > 0.2 }' spent || fail "no GPU: it took $(cat spent) s of processor time"
  [ "$(wc -l <out)" -eq 1 ] || fail "no GPU: not one line"
  says "gpu-first-contact: there is no GPU here"
  [ -e results ] && fail "no GPU: files were left behind"
fi

printf '#!/bin/sh\necho "GPU 0: fake"\n' >bin/nvidia-smi
printf '#!/bin/sh\necho "$*" >>"$ASKED"\necho "ERROR SUMMARY: 0 errors"\n' >bin/compute-sanitizer
cat >bin/python3 <<'END'
#!/bin/sh
case "$*" in
  *gpu-resnet50.py*) printf 'precision,layout,batch,step_seconds,images_per_second\nf32,nchw,64,0.1,640\nbf16,nhwc,64,0.02,3200\n' ;;
esac
END
cat >stepcast-gpu <<'END'
#!/bin/sh
echo "$*" >>"$ASKED"
for word in "$@"; do last=$word; done
case "$*" in
  --version) echo "0.1.0" ;;
  "check --precisions tf32") echo "conv 3x3: off"; exit 5 ;;
  check*) echo "$3 nhwc: 10 of 10 arrays within 2e-05, the worst of them 1e-06" ;;
  *"--precision f16"*) [ -e "$ASKED.slow" ] || { touch "$ASKED.slow"; sleep 60; }; echo "step_seconds: [0.02]" >"$last" ;;
  capture*) printf 'step_seconds: [0.1, 0.04, 0.05]\nflags: [a]\n' >"$last" ;;
esac
END
chmod +x stepcast-gpu bin/*
export STEPCAST_GPU=$work/stepcast-gpu ASKED=$work/asked

# The limit of the fourth capture ends it, so it is unfinished; a check fails; the rest is done.
sed 's/capture-${pair% \*}" 30/capture-${pair% *}" 11/' "$script" >"$source_folder/tools/.first-contact-$$.sh"
quick=$source_folder/tools/.first-contact-$$.sh
trap 'rm -rf "$work" "$quick"' EXIT
bash "$quick" results >out 2>&1
[ $? -eq 1 ] || fail "first call: exit code"
says "check-f32: done"
says "check-tf32: FAILED with 5 after"
says "capture-f16: unfinished after"
says "ResNet-50, 64 samples, f32: 50.00 ms a step, 1280 images/s, with flags"
says "ResNet-50, 64 samples, f16: no trace"
says "beside PyTorch, f32: 2.00 of its rate"
says "memcheck: done"
says "1 stages failed: check-tf32. Read $work/results/logs/check-tf32.log first"
for file in summary.txt machine.txt version.txt logs/check-tf32.log traces/resnet50-b64-bf16-nhwc-gpu.yaml done/capture-f32; do
  tar tzf results.tar.gz | grep -qx "results/$file" || fail "the archive lacks $file"
done

# The archive alone is enough to go on; only what is left is asked for.
rm -r results
: >asked
sed -i 's/exit 5/exit 0/' stepcast-gpu
bash "$quick" results.tar.gz >out 2>&1
[ $? -eq 0 ] || fail "second call: exit code"
says "check-f32: done by an earlier call"
says "ResNet-50, 64 samples, f16: 20.00 ms a step, 3200 images/s"
says "next: keep the archive, then run tools/gpu-validate.sh"
[ "$(grep -vc version asked)" -eq 2 ] || fail "second call: asked for $(cat asked)"

# TERM in the middle of a stage: the archive has what was done before.
rm -f asked.slow
printf '#!/bin/sh\ncase "$*" in check*f32) exit 0 ;; check*) sleep 30 ;; esac\n' >stepcast-gpu
bash "$quick" ended >out 2>&1 &
pid=$!
for ((i = 0; i < 100; ++i)); do [ -e ended/done/check-f32 ] && [ -e ended/logs/check-tf32.log ] && break; sleep 0.1; done
rm -f ended.tar.gz
kill -TERM $pid
wait $pid
[ $? -eq 143 ] || fail "TERM: exit code"
tar tzf ended.tar.gz | grep -qx 'ended/done/check-f32' || fail "TERM: nothing was packed"

end_test

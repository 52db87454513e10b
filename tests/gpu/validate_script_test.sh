#!/bin/bash
# tools/gpu-validate.sh without a GPU: what it says, and with a program that pretends, that stages fail apart from each
# other and that a second call goes on.
# Usage: tests/gpu/validate_script_test.sh
. "$(dirname "$0")/../setup.sh"
script=$source_folder/tools/gpu-validate.sh

mkdir bin
export PATH=$work/bin:$PATH
printf '#!/bin/sh\nexit 1\n' >bin/nvidia-smi
printf '#!/bin/sh\nexit 1\n' >bin/python3  # no PyTorch
chmod +x bin/*
if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  bash "$script" results >out 2>&1
  [ $? -eq 2 ] || fail "no GPU: exit code"
  [ "$(wc -l <out)" -eq 1 ] || fail "no GPU: not one line"
  says "gpu-validate: there is no GPU here"
  [ -e results ] && fail "files were left behind"
fi

# One GPU, and a program that says what it was asked. Of it, `check` fails, tf32's captures lose the GPU once, and bf16's are
# through the second time.
cat >bin/nvidia-smi <<'END'
#!/bin/sh
echo "GPU 0: fake"
END
cat >stepcast-gpu <<'END'
#!/bin/sh
echo "$*" >>"$ASKED"
case "$*" in
  check*) echo "two arrays are off"; exit 5 ;;
  "capture-all --precision bf16"*) case "$*" in *resnet50*) ;; *) [ -e "$ASKED.again" ] || { echo "left"; touch "$ASKED.again"; exit 3; } ;; esac ;;
  "capture-all --precision tf32"*) case "$*" in *resnet50*) ;; *) [ -e "$ASKED.lost" ] || { touch "$ASKED.lost"; exit 4; } ;; esac ;;
  "validate --precision f32"*) mkdir -p "$WORK/results/validation"
    printf 'model,precision,layout,batch,predicted_step_seconds,measured_step_seconds,error,samples_per_second\nm,f32,nchw,24,1,1,0.01,24\n' \
      >"$WORK/results/validation/measured-f32-nchw.csv" ;;
esac
END
chmod +x stepcast-gpu
export STEPCAST_GPU=$work/stepcast-gpu ASKED=$work/asked WORK=$work
bash "$script" results >out 2>&1
[ $? -eq 1 ] || fail "first call: exit code"
says "build: $work/stepcast-gpu is there"
says "tests: FAILED with 1 after"
says "the tests were not built; is Catch2 missing?"
says "check-f32: FAILED with 5 after"
says "two arrays are off"
says "capture-f32: done"
says "capture-tf32: done"
says "capture-bf16: unfinished after"
says "1 stages are unfinished, run the command again to continue: capture-bf16"
says "5 stages failed: check-f32 check-tf32 check-bf16 check-f16 tests"
[ "$(grep -c "^capture-all --precision tf32.*traces$" asked)" -eq 4 ] || fail "a capture that loses the GPU"
says "points: 1, outside 3 %: 0"
seconds=$(sed -n '/--models/d; s/^capture-all .*--precision f32 .*--seconds \([0-9]*\) -o.*/\1/p' asked)
[ "${seconds:-0}" -gt 60 ] || fail "all captures in f32 were given $seconds s"

tar tzf results.tar.gz | grep -q '^results/logs/capture-f32.log$' || fail "the results are not packed"

# What was through is not asked again; what is mended is.
: >asked
sed -i 's/exit 5/exit 0/' stepcast-gpu
mkdir -p tests/gpu && touch tests/gpu/gpu_device_tests
printf '#!/bin/sh\necho "all pass"\n' >bin/ctest
chmod +x bin/ctest
bash "$script" results >out 2>&1
[ $? -eq 0 ] || fail "second call: exit code"
says "capture-f32: done by an earlier call"
says "capture-bf16: done in"
says_not "failed"
[ "$(grep -c '^capture-all' asked)" -eq 1 ] || fail "captures were asked for again"

# The archive goes on where the disk was lost.
rm -r results
: >asked
bash "$script" results.tar.gz >out 2>&1
[ $? -eq 0 ] || fail "from the archive: exit code"
says "capture-bf16: done by an earlier call"
[ -s asked ] && fail "from the archive: asked again"

# Without a program and a compiler for CUDA the script stops at the build, and says what to install. The mark of an earlier build,
# whose program is gone with its disk, does not pass for a program.
mkdir -p unbuilt/done && touch unbuilt/done/build
printf '#!/bin/sh\necho "CMake Error at CMakeLists.txt:1: no cuDNN"\nexit 1\n' >bin/cmake
chmod +x bin/cmake
STEPCAST_GPU=$work/none bash "$script" unbuilt >out 2>&1
[ $? -eq 1 ] || fail "no build: exit code"
says "build: FAILED with 1"
says "CMake Error at CMakeLists.txt:1: no cuDNN"
says "libyaml-cpp-dev"
says_not "check-f32"
rm bin/cmake

# The limits of stages, and of the import of PyTorch, which may hang: it lies outside of all stages.
printf '#!/bin/sh\necho "$*" >>"$ASKED.limits"\nexec %s "$@"\n' "$(command -v timeout)" >bin/timeout
chmod +x bin/timeout
printf '#!/bin/sh\nexit 0\n' >bin/python3
bash "$script" limits >out 2>&1
for limit in "30 python3 -c import torch, torchvision" "--kill-after=5 20 bash $script .* check f32" "--kill-after=5 90 bash $script .* compare_with_torch" \
  "--kill-after=5 150 bash $script .* ranks host host"; do
  grep -q -e "^$limit" asked.limits || fail "no stage has the limit $limit"
done
printf '#!/bin/sh\nexec sleep 20\n' >bin/python3
(script=$script . "$source_folder/tools/gpu-stages.sh"; trap - EXIT; timeout() { shift && command timeout 1 "$@"; }; have_torch) && fail "an import that hangs counts"
rm bin/timeout

# Beside PyTorch: what has no trace yet is compared by a later call, and PyTorch is timed once.
cat >bin/python3 <<'END'
#!/bin/sh
case "$*" in
  *gpu-resnet50.py*) echo "torch" >>"$ASKED"
    printf 'precision,layout,batch,step_seconds,images_per_second\nf32,nchw,64,0.1,640\ntf32,nhwc,64,0.05,1280\n' ;;
esac
END
cat >stepcast-gpu <<'END'
#!/bin/sh
echo "$*" >>"$ASKED"
case "$*" in
  "capture-all --precision tf32 --layout nhwc --models resnet50 --batches 64 "*)
    echo "step_seconds: [0.1, 0.052, 0.05]" >"$WORK/beside/traces/resnet50-b64-tf32-nhwc-gpu.yaml" ;;
esac
END
: >asked
bash "$script" beside >out 2>&1
[ $? -eq 3 ] || fail "beside PyTorch: exit code"
says "torch: unfinished after"
says "tf32,nhwc,64,1230.8,1280.0,0.962"
grep -n -m1 "models resnet50" asked | grep -q "batches 64 " || fail "resnet50 does not begin with the batch that is compared"
echo "step_seconds: [0.2]" >beside/traces/resnet50-b64-f32-nchw-gpu.yaml
bash "$script" beside >out 2>&1
[ $? -eq 1 ] || fail "below PyTorch: exit code"
says "torch: FAILED with 1 after"
says "below 0.9 of PyTorch: f32,nchw,64,320.0,640.0,0.500"
[ "$(grep -c torch asked)" -eq 1 ] || fail "PyTorch was timed again"

# Two GPUs: NCCL begins with one communicator alone, and a point that hangs or fails costs only itself. MODELS chooses.
printf '#!/bin/sh\necho "GPU 0: fake"\necho "GPU 1: fake"\n' >bin/nvidia-smi
printf '#!/bin/sh\nexit 1\n' >bin/python3
cat >stepcast-gpu <<'END'
#!/bin/sh
echo "$*" >>"$ASKED"
case "$*" in *"--path nccl"*"kind: zero"*) exit 4 ;; esac
END
: >asked
MODELS=alexnet,vgg16 bash "$script" two >out 2>&1
[ $? -eq 1 ] || fail "two GPUs: exit code"
says "ranks-host: done"
says "ranks-nccl-collectives: FAILED with 4"
says "ranks-nccl-server: done"
[ "$(grep -o -e '--path [a-z]*' asked | tr '\n' ' ')" = "--path host --path nccl --path nccl --path nccl --path nccl --path nccl " ] || fail "two GPUs: order"
grep -m1 -e '--path nccl' asked | grep -q 'sweep=\[{model: \[small-cnn\].*kind: synchronous, all_reduce: ring}\]}\]' || fail "NCCL does not begin with synchronous alone"
grep -q '^capture-all --precision f32.*--models alexnet,vgg16' asked || fail "MODELS does not choose"

# Every stage of NCCL is a point of the scenario.
for kind in "kind: synchronous, all_reduce: ring, bucket: 25 MB" "kind: zero, stage: 2" "kind: model_averaging" "kind: pipeline" "kind: tensor" "kind: parameter_server"; do
  grep -e '--path nccl' asked | grep -qF "$kind" || fail "no stage runs $kind"
  grep -qF "$kind" "$source_folder/scenarios/validate/gpu.yaml" || fail "the scenario lacks $kind"
done

# Without any time nothing is begun, and nothing has failed.
SECONDS_IN_ALL=3 bash "$script" later >out 2>&1
[ $? -eq 3 ] || fail "no time: exit code"
says "check-f32: not started: no time left"
says_not "FAILED"

end_test

(module
  (memory (export "memory") 16)
  ;; One layer for one frame: output[row] = max(least, bias[row] + sum of weights[row][i] * input[i]), all of them f32.
  ;; Rows come in groups of four: four biases, then for every four inputs four weights of each row. $inputBytes is a multiple of 16.
  (func (export "layer")
    (param $weights i32) (param $rows i32) (param $input i32) (param $inputBytes i32) (param $output i32) (param $least f32)
    (local $at i32) (local $x v128) (local $bias v128) (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (loop $fourRows
      (local.set $bias (v128.load (local.get $weights)))
      (local.set $weights (i32.add (local.get $weights) (i32.const 16)))
      (local.set $a (v128.const f32x4 0 0 0 0))
      (local.set $b (local.get $a))
      (local.set $c (local.get $a))
      (local.set $d (local.get $a))
      (local.set $at (i32.const 0))
      (loop $fourInputs
        (local.set $x (v128.load (i32.add (local.get $input) (local.get $at))))
        (local.set $a (f32x4.add (local.get $a) (f32x4.mul (local.get $x) (v128.load (local.get $weights)))))
        (local.set $b (f32x4.add (local.get $b) (f32x4.mul (local.get $x) (v128.load offset=16 (local.get $weights)))))
        (local.set $c (f32x4.add (local.get $c) (f32x4.mul (local.get $x) (v128.load offset=32 (local.get $weights)))))
        (local.set $d (f32x4.add (local.get $d) (f32x4.mul (local.get $x) (v128.load offset=48 (local.get $weights)))))
        (local.set $weights (i32.add (local.get $weights) (i32.const 64)))
        (br_if $fourInputs
          (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $inputBytes))))
      ;; Sums a0 b0 a1 b1 + a2 b2 a3 b3, the same for c and d, then the halves of both: a b c d.
      (local.set $a (f32x4.add
        (i8x16.shuffle 0 1 2 3 16 17 18 19 4 5 6 7 20 21 22 23 (local.get $a) (local.get $b))
        (i8x16.shuffle 8 9 10 11 24 25 26 27 12 13 14 15 28 29 30 31 (local.get $a) (local.get $b))))
      (local.set $c (f32x4.add
        (i8x16.shuffle 0 1 2 3 16 17 18 19 4 5 6 7 20 21 22 23 (local.get $c) (local.get $d))
        (i8x16.shuffle 8 9 10 11 24 25 26 27 12 13 14 15 28 29 30 31 (local.get $c) (local.get $d))))
      (v128.store (local.get $output)
        (f32x4.max (f32x4.splat (local.get $least)) (f32x4.add (local.get $bias) (f32x4.add
          (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $a) (local.get $c))
          (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $a) (local.get $c))))))
      (local.set $output (i32.add (local.get $output) (i32.const 16)))
      (br_if $fourRows (local.tee $rows (i32.sub (local.get $rows) (i32.const 4)))))))

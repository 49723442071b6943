(module
  (memory (export "memory") 1)
  ;; Writes the dot products of $count rows (from $rows, $stride signed bytes each) with the row at 0, as i32 from $out.
  (func (export "dots") (param $rows i32) (param $count i32) (param $stride i32) (param $out i32)
    (local $at i32) (local $sum v128) (local $a v128) (local $b v128)
    (block $done
      (loop $row
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $at (i32.const 0))
        (local.set $sum (v128.const i32x4 0 0 0 0))
        (loop $step
          (local.set $a (v128.load (local.get $at)))
          (local.set $b (v128.load (i32.add (local.get $rows) (local.get $at))))
          (local.set $sum (i32x4.add (local.get $sum)
            (i32x4.add
              (i32x4.dot_i16x8_s (i16x8.extend_low_i8x16_s (local.get $a)) (i16x8.extend_low_i8x16_s (local.get $b)))
              (i32x4.dot_i16x8_s (i16x8.extend_high_i8x16_s (local.get $a)) (i16x8.extend_high_i8x16_s (local.get $b))))))
          (br_if $step (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $stride))))
        (i32.store (local.get $out)
          (i32.add
            (i32.add (i32x4.extract_lane 0 (local.get $sum)) (i32x4.extract_lane 1 (local.get $sum)))
            (i32.add (i32x4.extract_lane 2 (local.get $sum)) (i32x4.extract_lane 3 (local.get $sum)))))
        (local.set $rows (i32.add (local.get $rows) (local.get $stride)))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $row)))))

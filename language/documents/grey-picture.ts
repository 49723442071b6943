/** Shades of grey, one byte per pixel, rows from the top. */
export interface GreyPicture {
  width: number;
  height: number;
  grey: Buffer;
}

export function pnmOf({ width, height, grey }: GreyPicture): Buffer {
  return Buffer.concat([Buffer.from(`P5\n${width} ${height}\n255\n`), grey]);
}

/** Transparent pixels are blended onto white. Null if there are too few bytes. */
export function greyOfColours(
  data: Uint8Array | Uint8ClampedArray,
  { width, height, bytesPerPixel }: { width: number; height: number; bytesPerPixel: 3 | 4 },
): Buffer | null {
  const pixels = width * height;
  if (data.length < pixels * bytesPerPixel) return null;
  const grey = Buffer.alloc(pixels);
  for (let at = 0, from = 0; at < pixels; at += 1, from += bytesPerPixel) {
    const opacity = bytesPerPixel === 4 ? data[from + 3]! / 255 : 1;
    const luma = 0.299 * data[from]! + 0.587 * data[from + 1]! + 0.114 * data[from + 2]!;
    grey[at] = Math.round(luma * opacity + 255 * (1 - opacity));
  }
  return grey;
}

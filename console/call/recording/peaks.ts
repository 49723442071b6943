/** Peaks of a recording in the JSON format of audiowaveform, version 2. */
export interface PeaksFile {
  channels: number;
  bits: number;
  length: number;
  data: number[];
}

/** Highest level at each point per channel, 0 to 1. */
export function channelsOf({ channels, bits, length, data }: PeaksFile): Float32Array[] {
  const full = 2 ** (bits - 1);
  return Array.from({ length: channels }, (_, channel) =>
    Float32Array.from({ length }, (__, point) => {
      const at = (point * channels + channel) * 2;
      return Math.min(1, Math.max(Math.abs(data[at] ?? 0), Math.abs(data[at + 1] ?? 0)) / full);
    }),
  );
}

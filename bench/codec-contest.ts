/**
 * CPU time of speech codecs per frame of 20 ms at 16 kHz. Contenders alternate on the same frames; the fastest round
 * counts.
 */

export interface CodecContender {
  /** The returned memory may be reused. */
  encode(samples: Int16Array): Uint8Array;
  decode(packet: Uint8Array): void;
}

const ROUNDS = 8;
const FRAMES = 400;
export const FRAME_SAMPLES = 320;

/** Prints the cost of each, and the ratio of the first to each of the others. */
export function compareCodecs(contenders: Readonly<Record<string, CodecContender>>): void {
  const best = new Map<string, { encodeUs: number; decodeUs: number }>();
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, contender] of Object.entries(contenders)) {
      const packets: Uint8Array[] = [];
      const encodeUs = timed((frame) => {
        packets.push(contender.encode(speech[frame]!).slice());
      });
      const decodeUs = timed((frame) => contender.decode(packets[frame]!));
      const before = best.get(name) ?? { encodeUs, decodeUs };
      best.set(name, {
        encodeUs: Math.min(before.encodeUs, encodeUs),
        decodeUs: Math.min(before.decodeUs, decodeUs),
      });
    }
  }
  console.log(`CPU a frame of 20 ms, the best of ${ROUNDS} rounds of ${FRAMES} frames`);
  for (const [name, { encodeUs, decodeUs }] of best) {
    console.log(`${name.padEnd(12)} encode ${encodeUs.toFixed(2)} us, decode ${decodeUs.toFixed(2)} us`);
  }
  const [first, ...others] = [...best];
  if (first === undefined) return;
  const [firstName, ours] = first;
  for (const [name, theirs] of others) {
    const encodeRatio = (ours.encodeUs / theirs.encodeUs).toFixed(2);
    const decodeRatio = (ours.decodeUs / theirs.decodeUs).toFixed(2);
    console.log(`ratio of ${firstName} to ${name}: encode ${encodeRatio}, decode ${decodeRatio}`);
  }
}

/** Chords that rise and fall, so that the predictors have work. */
export const speech = Array.from({ length: FRAMES }, (_, frame) =>
  Int16Array.from({ length: FRAME_SAMPLES }, (_, i) => {
    const t = (frame * FRAME_SAMPLES + i) / 16_000;
    const level = 6000 * (1 + Math.sin(2 * Math.PI * 3 * t));
    return level * (Math.sin(2 * Math.PI * 190 * t) + 0.3 * Math.sin(2 * Math.PI * 1330 * t) + 0.1 * Math.random());
  }),
);

function timed(work: (frame: number) => void): number {
  const { user, system } = process.cpuUsage();
  for (let frame = 0; frame < FRAMES; frame++) work(frame);
  const after = process.cpuUsage({ user, system });
  return (after.user + after.system) / FRAMES;
}

import { G722Decoder, G722Encoder } from '../media/codecs/g722.ts';

/**
 * CPU to encode and decode 20 ms of G.722. The reference is Debian's libspandsp2, in C, called through koffi in the same
 * run on the same frames. Contenders take turns; the fastest round counts.
 */

const ROUNDS = 8;
const FRAMES = 400;
const FRAME_SAMPLES = 320;
const FRAME_OCTETS = 160;

/** Chords that rise and fall, so that the predictors have work. */
const speech = Array.from({ length: FRAMES }, (_, frame) =>
  Int16Array.from({ length: FRAME_SAMPLES }, (_, i) => {
    const t = (frame * FRAME_SAMPLES + i) / 16_000;
    const level = 6000 * (1 + Math.sin(2 * Math.PI * 3 * t));
    return level * (Math.sin(2 * Math.PI * 190 * t) + 0.3 * Math.sin(2 * Math.PI * 1330 * t) + 0.1 * Math.random());
  }),
);

interface Contender {
  encode: (samples: Int16Array, octets: Uint8Array) => void;
  decode: (octets: Uint8Array, samples: Int16Array) => void;
}

const encoder = new G722Encoder();
const decoder = new G722Decoder();
const contenders: Record<string, Contender> = {
  tandem: {
    encode: (samples, octets) => void encoder.encode(samples, octets),
    decode: (octets, samples) => void decoder.decode(octets, samples),
  },
};
const reference = await openSpandsp();
if (reference === null) console.log('libspandsp2 (Debian) is not installed; no reference.');
else contenders.libspandsp2 = reference;

const best = new Map<string, { encodeUs: number; decodeUs: number }>();
const octets = Array.from({ length: FRAMES }, () => new Uint8Array(FRAME_OCTETS));
const heard = new Int16Array(FRAME_SAMPLES);
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, { encode, decode }] of Object.entries(contenders)) {
    const encodeUs = timed((frame) => encode(speech[frame]!, octets[frame]!));
    const decodeUs = timed((frame) => decode(octets[frame]!, heard));
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
const [ours, theirs] = [best.get('tandem')!, best.get('libspandsp2')];
if (theirs !== undefined) {
  const encodeRatio = (ours.encodeUs / theirs.encodeUs).toFixed(2);
  const decodeRatio = (ours.decodeUs / theirs.decodeUs).toFixed(2);
  console.log(`ratio to libspandsp2: encode ${encodeRatio}, decode ${decodeRatio}`);
}

function timed(work: (frame: number) => void): number {
  const { user, system } = process.cpuUsage();
  for (let frame = 0; frame < FRAMES; frame++) work(frame);
  const after = process.cpuUsage({ user, system });
  return (after.user + after.system) / FRAMES;
}

/** Null where the library is missing. */
async function openSpandsp(): Promise<Contender | null> {
  try {
    const { default: koffi } = await import('koffi');
    const library = koffi.load('libspandsp.so.2');
    const encode = library.func('int g722_encode(void *state, uint8_t *octets, int16_t *samples, int count)');
    const decode = library.func('int g722_decode(void *state, int16_t *samples, uint8_t *octets, int count)');
    const encoding = library.func('void *g722_encode_init(void *, int, int)')(null, 64_000, 0);
    const decoding = library.func('void *g722_decode_init(void *, int, int)')(null, 64_000, 0);
    return {
      encode: (samples, target) => encode(encoding, target, samples, samples.length),
      decode: (source, samples) => decode(decoding, samples, source, source.length),
    };
  } catch {
    return null;
  }
}

import type { Codec } from '../../machines/events.ts';
import { FRAME_SAMPLES, TELEPHONY_SAMPLE_RATE_HZ } from '../../media/dsp/tones.ts';
import type { PacketEncoder } from '../../media/relay/packet-encoder.ts';
import { readWav } from '../../media/wav.ts';

/** Audio that a softphone sends. `none` sends no RTP, `silence` sends zero samples. */
export type SoftphoneAudio =
  /** `frequencyHz` may exceed 4 kHz with a 16 kHz codec. */
  | { kind: 'tone'; frequencyHz: number; levelDbfs?: number }
  /** 8 or 16 kHz, 16 bit, first channel. `loop` defaults to true; otherwise silence follows. */
  | { kind: 'wav'; path: string; loop?: boolean }
  /** 8 kHz. `loop` defaults to false. Silent in each call until the promise of `after` resolves. */
  | { kind: 'samples'; samples: Int16Array; loop?: boolean; after?: () => Promise<unknown> }
  | { kind: 'silence' }
  | { kind: 'none' };

/** Fills the next 20 ms, at 16 kHz if `isWide`, otherwise at 8 kHz. */
export interface FrameSource {
  isWide: boolean;
  fill: FillFrame;
}

type FillFrame = (frame: Int16Array) => void;

export async function openAudioSource(audio: SoftphoneAudio): Promise<FrameSource | null> {
  switch (audio.kind) {
    case 'none':
      return null;
    case 'silence':
      return narrow((frame) => void frame.fill(0));
    case 'tone':
      return toneSource(audio.frequencyHz, audio.levelDbfs ?? -10);
    case 'wav':
      return narrow(samplesSource(await readSamples(audio.path), audio.loop ?? true));
    case 'samples':
      return narrow(silentUntil(audio.after?.(), samplesSource(audio.samples, audio.loop ?? false)));
  }
}

export function nextPayload(source: FrameSource, codec: Codec, encoder: PacketEncoder): Uint8Array {
  const samples = new Int16Array(source.isWide ? 2 * FRAME_SAMPLES : FRAME_SAMPLES);
  source.fill(samples);
  if (codec === 'OPUS') return encoder.encodeOpus(samples, source.isWide);
  const payload = new Uint8Array(FRAME_SAMPLES);
  if (source.isWide) encoder.encodeWide(codec, samples, samples.length, payload, 0);
  else encoder.encode(codec, samples, samples.length, payload, 0);
  return payload;
}

/** The phase continues across frames to avoid clicks. */
function toneSource(frequencyHz: number, levelDbfs: number): FrameSource {
  const amplitude = 32_767 * 10 ** (levelDbfs / 20);
  const isWide = frequencyHz >= TELEPHONY_SAMPLE_RATE_HZ / 2;
  const radiansPerSample = (2 * Math.PI * frequencyHz) / TELEPHONY_SAMPLE_RATE_HZ / (isWide ? 2 : 1);
  let sampleIndex = 0;
  return {
    isWide,
    fill: (frame) => {
      for (let i = 0; i < frame.length; i++) {
        frame[i] = Math.round(amplitude * Math.sin(radiansPerSample * sampleIndex++));
      }
    },
  };
}

function narrow(fill: FillFrame): FrameSource {
  return { isWide: false, fill };
}

function samplesSource(samples: Int16Array, loop: boolean): FillFrame {
  let position = 0;
  return (frame) => {
    for (let i = 0; i < frame.length; i++) {
      if (position >= samples.length && loop) position = 0;
      frame[i] = position < samples.length ? samples[position++]! : 0;
    }
  };
}

/** Stays silent if the promise never resolves. */
function silentUntil(beginning: Promise<unknown> | undefined, source: FillFrame): FillFrame {
  if (beginning === undefined) return source;
  let hasBegun = false;
  beginning.then(
    () => {
      hasBegun = true;
    },
    () => {},
  );
  return (frame) => (hasBegun ? source(frame) : void frame.fill(0));
}

async function readSamples(path: string): Promise<Int16Array> {
  const wav = await readWav(path);
  const mono = wav.samples[0] ?? new Int16Array(0);
  if (wav.sampleRateHz === TELEPHONY_SAMPLE_RATE_HZ) return mono;
  if (wav.sampleRateHz !== 2 * TELEPHONY_SAMPLE_RATE_HZ) throw new Error('a softphone plays WAV files of 8 or 16 kHz');
  const halved = new Int16Array(Math.floor(mono.length / 2));
  for (let i = 0; i < halved.length; i++) halved[i] = (mono[2 * i]! + mono[2 * i + 1]!) >> 1;
  return halved;
}

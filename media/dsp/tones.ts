import { ALAW_SILENCE, encodeG711, type G711Codec, MULAW_SILENCE } from '../codecs/g711.ts';

/**
 * Generated tones: the Indian ringing tone (ITU-T E.180 supplement 2: 400 Hz + 450 Hz in cadence 0.4 on, 0.2 off, 0.4
 * on, 2.0 off), the recording tone, and sines for softphones and tests.
 */

export const TELEPHONY_SAMPLE_RATE_HZ = 8000;
export const FRAME_MS = 20;
/** Samples, and G.711 octets, in one 20 ms frame. */
export const FRAME_SAMPLES = 160;

interface ToneOptions {
  /** Equal-amplitude components, e.g. `[440]` or `[400, 450]`. */
  frequenciesHz: readonly number[];
  durationMs: number;
  /** Level of the sum relative to a full-scale sine. Default -10. */
  levelDbfs?: number;
  /** Default 8000. */
  sampleRateHz?: number;
}

/** Linear 16-bit samples of a tone. The peak stays within `levelDbfs` for any number of components. */
export function tone(options: ToneOptions): Int16Array<ArrayBuffer> {
  const { frequenciesHz, durationMs, levelDbfs = -10, sampleRateHz = TELEPHONY_SAMPLE_RATE_HZ } = options;
  const samples = new Int16Array(Math.round((durationMs * sampleRateHz) / 1000));
  const amplitude = (32767 * 10 ** (levelDbfs / 20)) / Math.max(1, frequenciesHz.length);
  for (const frequencyHz of frequenciesHz) {
    const radiansPerSample = (2 * Math.PI * frequencyHz) / sampleRateHz;
    for (let i = 0; i < samples.length; i++) {
      samples[i] = samples[i]! + Math.round(amplitude * Math.sin(radiansPerSample * i));
    }
  }
  return samples;
}

/** A tone as G.711 frames of 20 ms (the last one padded with silence), usable as RTP payloads. */
export function toneFrames(codec: G711Codec, options: ToneOptions): Uint8Array[] {
  return framesOf(codec, tone({ ...options, sampleRateHz: TELEPHONY_SAMPLE_RATE_HZ }));
}

/** Splits linear 8 kHz samples into G.711 frames of 20 ms, the last one padded with silence. */
export function framesOf(codec: G711Codec, samples: Int16Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  const frameSamples = new Int16Array(FRAME_SAMPLES);
  for (let start = 0; start < samples.length; start += FRAME_SAMPLES) {
    frameSamples.fill(0);
    frameSamples.set(samples.subarray(start, start + FRAME_SAMPLES));
    const frame = new Uint8Array(FRAME_SAMPLES);
    encodeG711(codec, frameSamples, frame);
    frames.push(frame);
  }
  return frames;
}

/** The recorder warning tone of Federal Standard 1037C: a half-second burst of 1400 Hz. Once, not repeated. */
const RECORDING_TONE = { frequenciesHz: [1400], durationMs: 500, levelDbfs: -16, sampleRateHz: 16_000 };
/** A ramp prevents clicks. */
const RECORDING_TONE_RAMP_SAMPLES = 160;

/** Linear, 16 kHz. Computed once and shared: treat as read-only. */
export function recordingTone(): Int16Array<ArrayBuffer> {
  recordingToneSamples ??= ramped(tone(RECORDING_TONE), RECORDING_TONE_RAMP_SAMPLES);
  return recordingToneSamples;
}

let recordingToneSamples: Int16Array<ArrayBuffer> | null = null;

function ramped(samples: Int16Array<ArrayBuffer>, rampSamples: number): Int16Array<ArrayBuffer> {
  for (let i = 0; i < rampSamples; i++) {
    const gain = i / rampSamples;
    samples[i] = Math.round(samples[i]! * gain);
    samples[samples.length - 1 - i] = Math.round(samples.at(-1 - i)! * gain);
  }
  return samples;
}

/** One silent frame, shared: treat as read-only. */
export function silenceFrames(codec: G711Codec): readonly Uint8Array[] {
  return codec === 'PCMU' ? SILENT_MULAW : SILENT_ALAW;
}

const SILENT_MULAW = [new Uint8Array(FRAME_SAMPLES).fill(MULAW_SILENCE)];
const SILENT_ALAW = [new Uint8Array(FRAME_SAMPLES).fill(ALAW_SILENCE)];

const RINGBACK_FREQUENCIES_HZ = [400, 450] as const;
/** On, off, on, off; one period. */
const RINGBACK_CADENCE_MS = [400, 200, 400, 2000] as const;

/**
 * One period (3 s) of ringing tone: 150 frames of 160 octets. Both frequencies have whole cycles in it, so it loops
 * seamlessly. Computed once per codec and shared: treat as read-only.
 */
export function ringbackFrames(codec: G711Codec): readonly Uint8Array[] {
  const cached = ringbackByCodec.get(codec);
  if (cached !== undefined) return cached;
  const frames = framesOf(codec, ringbackPeriod());
  ringbackByCodec.set(codec, frames);
  return frames;
}

const ringbackByCodec = new Map<G711Codec, readonly Uint8Array[]>();

function ringbackPeriod(): Int16Array {
  const periodMs = RINGBACK_CADENCE_MS.reduce((sum, ms) => sum + ms, 0);
  const samples = tone({ frequenciesHz: RINGBACK_FREQUENCIES_HZ, durationMs: periodMs, levelDbfs: -13 });
  let startMs = 0;
  RINGBACK_CADENCE_MS.forEach((durationMs, index) => {
    const isPause = index % 2 === 1;
    if (isPause) samples.fill(0, startMs * 8, (startMs + durationMs) * 8);
    startMs += durationMs;
  });
  return samples;
}

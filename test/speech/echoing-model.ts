import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { wavHeader } from '../../media/wav.ts';
import { writeEspeakData } from './humming-models.ts';
import { encodeOnnx, float, integers } from './tiny-onnx.ts';

/**
 * A ZipVoice model of a few kilobytes that repeats the loudest tone of the reference recording, longer for longer
 * texts.
 */
export const ECHOING_RATE_HZ = 24_000;

export async function writeEchoingZipvoice(folder: string): Promise<void> {
  const files = {
    'encoder.onnx': encodeOnnx({
      inputs: [
        integers('tokens', ['N', 'T']),
        integers('prompt_tokens', ['N', 'S']),
        integers('prompt_features_len', [1]),
        float('speed', [1]),
      ],
      outputs: [float('text_condition', ['N', 'F', BANDS])],
      nodes: [
        { operator: 'Shape', inputs: ['tokens'], outputs: ['shape'] },
        { operator: 'Gather', inputs: ['shape', 'one'], outputs: ['count'], attributes: { axis: 0 } },
        { operator: 'Cast', inputs: ['count'], outputs: ['tokenCount'], attributes: { to: 1 } },
        { operator: 'Mul', inputs: ['tokenCount', 'framesEach'], outputs: ['usualFrames'] },
        { operator: 'Div', inputs: ['usualFrames', 'speed'], outputs: ['exactFrames'] },
        { operator: 'Cast', inputs: ['exactFrames'], outputs: ['frames'], attributes: { to: 7 } },
        { operator: 'Add', inputs: ['frames', 'prompt_features_len'], outputs: ['allFrames'] },
        { operator: 'Concat', inputs: ['one', 'allFrames', 'bands'], outputs: ['size'], attributes: { axis: 0 } },
        { operator: 'Expand', inputs: ['nothing', 'size'], outputs: ['text_condition'] },
      ],
      weights: [
        { name: 'one', shape: [1], integers: [1] },
        { name: 'bands', shape: [1], integers: [BANDS] },
        { name: 'framesEach', shape: [1], floats: [FRAMES_OF_TOKEN] },
        { name: 'nothing', shape: [1, 1, 1], floats: [0] },
      ],
      metadata: { model_type: 'zipvoice', use_espeak: 1 },
    }),
    // Flows from any initial noise straight to the loud bands of the recording.
    'decoder.onnx': encodeOnnx({
      inputs: [
        float('t', [1]),
        float('x', ['N', 'F', BANDS]),
        float('text_condition', ['N', 'F', BANDS]),
        float('speech_condition', ['N', 'F', BANDS]),
        float('guidance_scale', [1]),
      ],
      outputs: [float('v', ['N', 'F', BANDS])],
      nodes: [
        { operator: 'ReduceMax', inputs: ['speech_condition'], outputs: ['loudest'], attributes: { axes: [1] } },
        { operator: 'Add', inputs: ['text_condition', 'loudest'], outputs: ['target'] },
        { operator: 'Sub', inputs: ['target', 'x'], outputs: ['way'] },
        { operator: 'Sub', inputs: ['one', 't'], outputs: ['left'] },
        { operator: 'Div', inputs: ['way', 'left'], outputs: ['v'] },
      ],
      weights: [{ name: 'one', shape: [1], floats: [1] }],
      metadata: {
        sample_rate: ECHOING_RATE_HZ,
        feat_dim: BANDS,
        num_mels: BANDS,
        n_fft: WINDOW,
        hop_length: WINDOW / 4,
      },
    }),
    'vocos_24khz.onnx': encodeOnnx({
      inputs: [float('mels', ['N', BANDS, 'F'])],
      outputs: ['mag', 'x', 'y'].map((name) => float(name, ['N', BINS, 'F'])),
      nodes: [
        { operator: 'MatMul', inputs: ['tones', 'mels'], outputs: ['mag'] },
        { operator: 'Mul', inputs: ['mag', 'zero'], outputs: ['y'] },
        { operator: 'Add', inputs: ['y', 'one'], outputs: ['x'] },
      ],
      weights: [
        { name: 'tones', shape: [BINS, BANDS], floats: toneOfBands() },
        { name: 'zero', shape: [1], floats: [0] },
        { name: 'one', shape: [1], floats: [1] },
      ],
      metadata: { model_type: 'vocos', n_fft: WINDOW, hop_length: WINDOW / 4, win_length: WINDOW },
    }),
    'tokens.txt': ['_', ' ', ...'abcdefghijklmnopqrstuvwxyzɐɑɔəɛɪʊʌ.,'].map((token, at) => `${token} ${at}\n`).join(''),
    'lexicon.txt': 'one w a n\ntwo t u\n',
  };
  await mkdir(folder, { recursive: true });
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  await writeEspeakData(folder);
}

export async function writeTone(path: string, hz: number): Promise<void> {
  const rateHz = 16_000;
  const tone = Int16Array.from({ length: rateHz }, (_, at) => 16_000 * Math.sin((2 * Math.PI * hz * at) / rateHz));
  await writeFile(
    path,
    Buffer.concat([wavHeader({ channels: 1, sampleRateHz: rateHz }, tone.byteLength), Buffer.from(tone.buffer)]),
  );
}

const BANDS = 100;
const WINDOW = 1024;
const BINS = WINDOW / 2 + 1;
const FRAMES_OF_TOKEN = 6;
const LOUDNESS = 1;

/** [bins, bands]: one tone per mel band with a phase that restarts every frame, which makes it continuous. */
function toneOfBands(): number[] {
  const mel = (hz: number) => 2595 * Math.log10(1 + hz / 700);
  const tones = new Array<number>(BINS * BANDS).fill(0);
  for (let band = 0; band < BANDS; band++) {
    const centreHz = 700 * (10 ** (((band + 1) / (BANDS + 1)) * (mel(ECHOING_RATE_HZ / 2) / 2595)) - 1);
    const bin = 4 * Math.round((centreHz / ECHOING_RATE_HZ) * (WINDOW / 4));
    tones[bin * BANDS + band] = LOUDNESS;
  }
  return tones;
}

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeOnnx, type OnnxModel } from './tiny-onnx.ts';

export const WHISPERED = { text: 'Hello.', startMs: 200, endMs: 600 };

/**
 * Writes a multilingual Whisper model that detects French if the upper half of the bands is louder, otherwise English,
 * and always returns the same text.
 */
export async function writeWhisper(folder: string): Promise<void> {
  // As in real models: text, end of text, commands, then timestamps in steps of 20 ms up to 30 s.
  const ids = {
    hello: 0,
    blank: 1,
    eot: 2,
    sot: 3,
    en: 4,
    fr: 5,
    translate: 6,
    transcribe: 7,
    noSpeech: 8,
    noTimestamps: 9,
  };
  const firstTime = ids.noTimestamps + 1;
  const timeToken = (ms: number) => firstTime + ms / 20;
  const vocabulary = firstTime + 1501;
  const follows = new Array<number>(vocabulary).fill(ids.eot);
  follows[ids.transcribe] = timeToken(WHISPERED.startMs);
  follows[timeToken(WHISPERED.startMs)] = ids.hello;
  follows[ids.hello] = timeToken(WHISPERED.endMs);
  const caches = ['n_layer_self_k_cache', 'n_layer_self_v_cache'];
  const cache = (name: string) => ({ name, type: 'float' as const, shape: [1, 1, 'C', 1] });
  const cross = (name: string) => ({ name, type: 'float' as const, shape: [1, BANDS, 1] });
  const loudness = new Array<number>(BANDS * vocabulary).fill(0);
  for (let band = 0; band < BANDS; band++) loudness[band * vocabulary + (band < BANDS / 2 ? ids.en : ids.fr)] = 0.01;
  await mkdir(folder, { recursive: true });
  const files: Record<string, OnnxModel> = {
    'tiny-encoder.onnx': {
      inputs: [{ name: 'mel', type: 'float', shape: [1, BANDS, 'T'] }],
      outputs: [cross('n_layer_cross_k'), cross('n_layer_cross_v')],
      nodes: ['n_layer_cross_k', 'n_layer_cross_v'].map((output) => ({
        operator: 'ReduceMax',
        inputs: ['mel'],
        outputs: [output],
        attributes: { axes: [2], keepdims: 1 },
      })),
      weights: [],
      metadata: {
        ...{ model_type: 'whisper-tiny', n_mels: BANDS, n_text_layer: 1, n_text_ctx: 16, n_text_state: 1 },
        ...{ n_vocab: vocabulary, sot: ids.sot, eot: ids.eot, blank_id: ids.blank, no_speech: ids.noSpeech },
        ...{ translate: ids.translate, transcribe: ids.transcribe, no_timestamps: ids.noTimestamps },
        ...{ is_multilingual: 1, sot_sequence: `${ids.sot},${ids.en},${ids.transcribe}` },
        ...{ all_language_tokens: `${ids.en},${ids.fr}`, all_language_codes: 'en,fr' },
      },
    },
    'tiny-decoder.onnx': {
      inputs: [
        { name: 'tokens', type: 'int64', shape: [1, 'N'] },
        ...caches.map(cache),
        cross('n_layer_cross_k'),
        cross('n_layer_cross_v'),
        { name: 'offset', type: 'int64', shape: [1] },
      ],
      outputs: [
        { name: 'logits', type: 'float', shape: [1, 'N', vocabulary] },
        ...caches.map((name) => cache(`out_${name}`)),
      ],
      nodes: [
        { operator: 'Gather', inputs: ['follows', 'tokens'], outputs: ['next'], attributes: { axis: 0 } },
        { operator: 'OneHot', inputs: ['next', 'depth', 'scores'], outputs: ['said'], attributes: { axis: -1 } },
        {
          operator: 'Transpose',
          inputs: ['n_layer_cross_k'],
          outputs: ['audible'],
          attributes: { perm: [0, 2, 1] },
        },
        { operator: 'MatMul', inputs: ['audible', 'loudness'], outputs: ['language'] },
        { operator: 'Add', inputs: ['said', 'language'], outputs: ['logits'] },
        ...caches.map((name) => ({ operator: 'Identity', inputs: [name], outputs: [`out_${name}`] })),
      ],
      weights: [
        { name: 'follows', shape: [vocabulary], integers: follows },
        { name: 'depth', shape: [1], integers: [vocabulary] },
        { name: 'scores', shape: [2], floats: [0, 10] },
        { name: 'loudness', shape: [BANDS, vocabulary], floats: loudness },
      ],
      metadata: {},
    },
  };
  for (const [name, model] of Object.entries(files)) await writeFile(join(folder, name), encodeOnnx(model));
  const token = Buffer.from(` ${WHISPERED.text}`).toString('base64');
  await writeFile(join(folder, 'tiny-tokens.txt'), `${token} ${ids.hello}\n`);
}

const BANDS = 80;

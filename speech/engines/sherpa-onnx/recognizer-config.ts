import { join } from 'node:path';
import type { SherpaModel } from './model-folder.ts';
import type { SherpaModelType } from './model-manifest.ts';

export interface RecognizerConfigOptions {
  folder: string;
  /** ISO 639-1; null: detected if the model can. */
  language: string | null;
}

/** `online-library.ts` reads the fields of its struct. */
export type RecognizerConfig = Readonly<Record<string, unknown>>;

export function recognizerConfig(model: SherpaModel, { folder, language }: RecognizerConfigOptions): RecognizerConfig {
  const files = Object.fromEntries(Object.entries(model.files).map(([role, file]) => [role, join(folder, file)]));
  const { tokens, bpeVocab, ...parts } = files;
  // Greedy search is faster. Only beam search uses a stream's hotwords.
  const isSearching = model.hotwords !== null;
  return {
    featConfig: { sampleRate: model.sampleRateHz, featureDim: 80 },
    modelConfig: {
      ...modelConfigOf(model.type, parts, language),
      tokens,
      // One thread each, because there are as many processes as cores.
      numThreads: 1,
      provider: 'cpu',
      debug: 0,
      ...(isSearching && { modelingUnit: model.hotwords, ...(bpeVocab !== undefined && { bpeVocab }) }),
    },
    decodingMethod: isSearching ? 'modified_beam_search' : 'greedy_search',
    maxActivePaths: 4,
    // The listener decides where an utterance ends.
    enableEndpoint: 0,
  };
}

type Parts = Readonly<Record<string, string>>;

function modelConfigOf(type: SherpaModelType, parts: Parts, language: string | null): object {
  switch (type) {
    case 'streaming-transducer':
      return { transducer: parts };
    // Without the type, sherpa-onnx loads the model twice to detect it.
    case 'transducer':
      return { transducer: parts, modelType: 'transducer' };
    case 'nemo-transducer':
      return { transducer: parts, modelType: 'nemo_transducer' };
    case 'streaming-paraformer':
    case 'paraformer':
      return { paraformer: parts };
    case 'streaming-zipformer-ctc':
      return { zipformer2Ctc: parts };
    case 'zipformer-ctc':
      return { zipformerCtc: parts };
    case 'streaming-nemo-ctc':
    case 'nemo-ctc':
      return { nemoCtc: parts };
    case 'streaming-t-one-ctc':
      return { toneCtc: parts };
    case 'wenet-ctc':
      return { wenetCtc: parts };
    case 'telespeech-ctc':
      return { teleSpeechCtc: parts.model, modelType: 'telespeech_ctc' };
    case 'omnilingual-ctc':
      return { omnilingual: parts };
    case 'dolphin':
      return { dolphin: parts };
    case 'tdnn':
      return { tdnn: parts };
    case 'sense-voice':
      return { senseVoice: { ...parts, language: language ?? 'auto', useInverseTextNormalization: 1 } };
    case 'whisper':
      // `jw` is Whisper's code of Javanese.
      return {
        whisper: {
          ...parts,
          language: language === 'jv' ? 'jw' : (language ?? ''),
          task: 'transcribe',
          enableSegmentTimestamps: 1,
        },
      };
    case 'moonshine':
    case 'moonshine-merged':
      return { moonshine: parts };
    case 'canary':
      return { canary: { ...parts, srcLang: language ?? 'en', tgtLang: language ?? 'en', usePnc: 1 } };
    case 'fire-red-asr':
      return { fireRedAsr: parts };
  }
}

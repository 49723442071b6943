import { join } from 'node:path';
import type { SherpaModel } from './model-folder.ts';
import type { SherpaModelType } from './model-manifest.ts';

export interface RecognizerConfigOptions {
  /** Folder of the model. */
  folder: string;
  /** ISO 639-1; null lets a model that can find out. */
  language: string | null;
}

/** What of it `online-library.ts` reads is its struct. */
export type RecognizerConfig = Readonly<Record<string, unknown>>;

/** The configuration of sherpa-onnx's recognizers for a model. */
export function recognizerConfig(model: SherpaModel, { folder, language }: RecognizerConfigOptions): RecognizerConfig {
  const files = Object.fromEntries(Object.entries(model.files).map(([role, file]) => [role, join(folder, file)]));
  const { tokens, bpeVocab, ...parts } = files;
  // The likeliest token is found faster. Only a search has a use for the hotwords of a stream.
  const isSearching = model.hotwords !== null;
  return {
    featConfig: { sampleRate: model.sampleRateHz, featureDim: 80 },
    modelConfig: {
      ...modelConfigOf(model.type, parts, language),
      tokens,
      // One thread each: there are as many processes as there are cores.
      numThreads: 1,
      provider: 'cpu',
      debug: 0,
      ...(isSearching && { modelingUnit: model.hotwords, ...(bpeVocab !== undefined && { bpeVocab }) }),
    },
    decodingMethod: isSearching ? 'modified_beam_search' : 'greedy_search',
    maxActivePaths: 4,
    // Where an utterance ends is for the listener to say.
    enableEndpoint: 0,
  };
}

type Parts = Readonly<Record<string, string>>;

function modelConfigOf(type: SherpaModelType, parts: Parts, language: string | null): object {
  switch (type) {
    case 'streaming-transducer':
      return { transducer: parts };
    // Told what it is, sherpa-onnx need not load the model twice to find out.
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

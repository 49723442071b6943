import { RECOGNITION_RATE_HZ } from '../../../machines/utterances.ts';
import { RecognizerError } from '../../recognizer.ts';
import type { LetterCase } from './hotwords.ts';
import type { SherpaModel } from './model-folder.ts';

/** Common parts of both kinds of recognizers. */
export interface RecognizerParts {
  folder: string;
  model: SherpaModel;
  letterCase: LetterCase;
  /** Null without a punctuation model. */
  punctuate: ((text: string) => string) | null;
}

/** Converts samples to sherpa-onnx's range, -1 to 1. */
export function toWaveform(samples: Int16Array): { samples: Float32Array<ArrayBuffer>; sampleRate: number } {
  return { samples: Float32Array.from(samples, (sample) => sample / 0x8000), sampleRate: RECOGNITION_RATE_HZ };
}

export function silence(milliseconds: number): { samples: Float32Array<ArrayBuffer>; sampleRate: number } {
  return toWaveform(new Int16Array(Math.ceil((milliseconds * RECOGNITION_RATE_HZ) / 1000)));
}

export function toMs(samples: number): number {
  return (samples * 1000) / RECOGNITION_RATE_HZ;
}

/** @throws RecognizerError `unsupported_language` */
export function requireLanguage({ name, languages }: SherpaModel, language: string | null): void {
  if (language === null || languages.includes(language)) return;
  throw new RecognizerError('unsupported_language', `${name} understands ${languages.join(', ')}, not ${language}`);
}

/** As in `Recognition`. */
export function modelName({ name }: SherpaModel): string {
  return `sherpa-onnx/${name}`;
}

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ServedRecognizer } from '../../engine-process/served-recognizer.ts';
import { letterCaseOf } from './hotwords.ts';
import type { InstalledModel } from './installed-models.ts';
import { isStreaming } from './model-folder.ts';
import { loadPunctuation, type PunctuationModel } from './punctuation.ts';
import { StreamingRecognizer } from './streaming-recognizer.ts';
import { WholeUtteranceRecognizer } from './whole-utterance-recognizer.ts';

export interface LoadRecognizerOptions extends InstalledModel {
  punctuation: PunctuationModel | null;
}

/** Loads a model into this process, which a damaged model crashes. */
export async function loadRecognizer({ folder, model, punctuation }: LoadRecognizerOptions): Promise<ServedRecognizer> {
  const letterCase = letterCaseOf(await readFile(join(folder, model.files.tokens!), 'utf8'));
  const punctuate = punctuation === null ? null : loadPunctuation(punctuation);
  const Recognizer = isStreaming(model) ? StreamingRecognizer : WholeUtteranceRecognizer;
  return new Recognizer({ folder, model, letterCase, punctuate });
}

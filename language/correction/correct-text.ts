import { TandemError } from '../../machines/errors.ts';
import type { LanguageModels, TokenUsage } from '../llm.ts';
import type { CountTokens } from '../tokens.ts';
import { correctByModel } from './correct-by-model.ts';
import { correctByRules, RULES_MODEL } from './rules/correct-by-rules.ts';
import { runInSlices } from './slices.ts';
import type { CorrectionPart, CorrectionRequest, TextCorrection } from './text-correction.ts';

export interface TextCorrectionOptions {
  models: LanguageModels;
  countTokens: CountTokens;
}

/** Corrects texts by the model that is asked for, else the usual one, else by rules. */
export function createTextCorrection({ models, countTokens }: TextCorrectionOptions): TextCorrection {
  return {
    async *stream(request) {
      const model = request.model === RULES_MODEL ? null : await modelFor(request, models);
      if (model === null) yield* byRules(request, countTokens);
      else yield* correctByModel({ ...request, model, mayFallBack: request.model === null }, { models, countTokens });
    },
  };
}

/** Null: the rules. Whoever named a model hears that it is not to be had; whoever did not wants a corrected text. */
async function modelFor({ model }: CorrectionRequest, models: LanguageModels): Promise<string | null> {
  try {
    return (await models.resolve(model)).id;
  } catch (error) {
    if (model === null && error instanceof TandemError) return null;
    throw error;
  }
}

async function* byRules(request: CorrectionRequest, countTokens: CountTokens): AsyncGenerator<CorrectionPart, void> {
  const { text, signal } = request;
  const corrected = await runInSlices(correctByRules(request), signal);
  for (let at = 0; at < corrected.length; ) {
    const piece = pieceAt(corrected, at);
    yield { type: 'text', text: piece };
    at += piece.length;
  }
  const usage: TokenUsage = {
    promptTokens: await runInSlices(count(text, countTokens), signal),
    completionTokens: await runInSlices(count(corrected, countTokens), signal),
    isEstimated: true,
  };
  yield { type: 'finished', usage, model: RULES_MODEL, byRules: 'all' };
}

/** Counting takes its time as well. A token more or less where a text is cut is of no account. */
function* count(text: string, countTokens: CountTokens): Generator<void, number> {
  let tokens = 0;
  for (let at = 0; at < text.length; ) {
    const piece = pieceAt(text, at);
    tokens += countTokens(piece);
    at += piece.length;
    yield;
  }
  return tokens;
}

const PIECE_LENGTH = 2_000;

/** Ends behind a space if there is one, and never between the two halves of a character. */
function pieceAt(text: string, at: number): string {
  const piece = text.slice(at, at + PIECE_LENGTH);
  if (at + PIECE_LENGTH >= text.length) return piece;
  const space = piece.lastIndexOf(' ');
  if (space > PIECE_LENGTH / 2) return piece.slice(0, space + 1);
  return /[\ud800-\udbff]$/.test(piece) && piece.length > 1 ? piece.slice(0, -1) : piece;
}

import { runInSlices } from '../../runtime/slices.ts';
import type { TokenUsage } from '../llm.ts';
import type { CountTokens } from '../tokens.ts';
import { correctByRules } from './rules/correct-by-rules.ts';
import type { CorrectionPart, CorrectionRequest } from './text-correction.ts';

/** Streams a correction by rules and returns the tokens used, as we count them. @throws the signal's reason */
export async function* streamByRules(
  request: CorrectionRequest,
  countTokens: CountTokens,
): AsyncGenerator<CorrectionPart & { type: 'text' }, TokenUsage> {
  const { text, signal } = request;
  const corrected = await runInSlices(correctByRules(request), signal);
  for (const piece of piecesOf(corrected)) yield { type: 'text', text: piece };
  return await usageOfRules({ text, corrected, countTokens, signal });
}

interface CorrectedByRules {
  text: string;
  corrected: string;
  countTokens: CountTokens;
  signal: AbortSignal;
}

/** Counts the tokens of the text and of its correction. @throws the signal's reason */
export async function usageOfRules({ text, corrected, countTokens, signal }: CorrectedByRules): Promise<TokenUsage> {
  return {
    promptTokens: await runInSlices(countInSlices(text, countTokens), signal),
    completionTokens: await runInSlices(countInSlices(corrected, countTokens), signal),
    isEstimated: true,
  };
}

/** Counts in slices, because counting takes time too. A cut may change the count by a token, which does not matter. */
export function* countInSlices(text: string, countTokens: CountTokens): Generator<void, number> {
  let tokens = 0;
  for (const piece of piecesOf(text)) {
    tokens += countTokens(piece);
    yield;
  }
  return tokens;
}

const PIECE_LENGTH = 2_000;

/** Pieces end after a space where possible, and never split a surrogate pair. */
function* piecesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const piece = text.slice(at, at + PIECE_LENGTH);
    const end = at + piece.length >= text.length ? piece.length : endOf(piece);
    yield piece.slice(0, end);
    at += end;
  }
}

function endOf(piece: string): number {
  const space = piece.lastIndexOf(' ');
  if (space > piece.length / 2) return space + 1;
  return /[\ud800-\udbff]$/.test(piece) ? piece.length - 1 : piece.length;
}

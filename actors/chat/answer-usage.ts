import type { TokenUsage } from '../../language/llm.ts';
import type { Answer } from './answer.ts';
import type { Admission } from './completion-account.ts';

type Limits = Pick<Admission, 'promptTokens' | 'mostTokens' | 'maxTokens'>;

/**
 * What is charged for the choices of a completion: the prompt once, and all tokens of the answers, but no more than the
 * hold covers. What engines report is used as far as it is possible, else our own count.
 */
export function usageOf(answers: readonly Answer[], limits: Limits): TokenUsage {
  const { promptTokens, mostTokens } = limits;
  const each = answers.map((answer) => usageOfOne(answer, limits));
  const completionTokens = each.reduce((sum, usage) => sum + usage.completionTokens, 0);
  const reported = Math.max(...each.map((usage) => usage.promptTokens));
  const mostOfPrompt = Math.min(
    promptTokens * MOST_OF_A_TOKEN,
    promptTokens + answers.length * mostTokens - completionTokens,
  );
  return {
    promptTokens: Math.min(reported, mostOfPrompt),
    completionTokens,
    isEstimated: each.some(({ isEstimated }) => isEstimated),
  };
}

function usageOfOne(answer: Answer, { promptTokens, mostTokens, maxTokens }: Limits): TokenUsage {
  const said = answer.end?.usage ?? usedSoFar(answer);
  if (!said || !isCount(said.promptTokens) || !isCount(said.completionTokens)) {
    return { promptTokens, completionTokens: answer.tokens, isEstimated: true };
  }
  // Beyond what it was told there is only what was seen.
  const mostOfAnswer = Math.min(mostTokens, Math.max(maxTokens ?? mostTokens, answer.tokens));
  return { ...said, completionTokens: Math.min(said.completionTokens, mostOfAnswer) };
}

/** For a correction that was cut off. Rules may have passed on more than a model has produced. */
function usedSoFar({ used, tokens }: Answer): TokenUsage | null {
  return used && { ...used, completionTokens: Math.max(used.completionTokens, tokens) };
}

/** No tokenizer makes more tokens of one of ours; a server that reports more is not believed. */
const MOST_OF_A_TOKEN = 16;

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

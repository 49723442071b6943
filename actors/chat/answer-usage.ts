import type { TokenUsage } from '../../language/llm.ts';
import type { Answer } from './answer.ts';
import type { Admission } from './completion-account.ts';

type Limits = Pick<Admission, 'promptTokens' | 'mostTokens' | 'maxTokens'>;

/**
 * Usage to charge for all choices: the prompt once and all answer tokens, up to what the hold covers. Prefers the
 * engine's counts if plausible, otherwise our own.
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
  const usage = answer.end?.usage ?? usedSoFar(answer);
  if (!usage || !isCount(usage.promptTokens) || !isCount(usage.completionTokens)) {
    return { promptTokens, completionTokens: answer.tokens, isEstimated: true };
  }
  // Ignore more tokens than were allowed or received.
  const mostOfAnswer = Math.min(mostTokens, Math.max(maxTokens ?? mostTokens, answer.tokens));
  return { ...usage, completionTokens: Math.min(usage.completionTokens, mostOfAnswer) };
}

/** Usage of an interrupted correction. Rules may have passed on more than the model produced. */
function usedSoFar({ used, tokens }: Answer): TokenUsage | null {
  return used && { ...used, completionTokens: Math.max(used.completionTokens, tokens) };
}

/** No tokenizer splits one of our tokens into more. Ignore higher counts from a server. */
const MOST_OF_A_TOKEN = 16;

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

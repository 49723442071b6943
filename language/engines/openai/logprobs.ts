import type { CompletionPart, Logprob, TokenLogprob } from '../../llm.ts';

/** OpenAI's limit. */
const MOST_ALTERNATIVES = 20;
const LONGEST_TOKEN = 256;
/** Per chunk. A server that does not stream sends the whole answer in one. */
const MOST_TOKENS = 131_072;

/** Reads `choices[0].logprobs` of any shape and ignores what does not conform to OpenAI's API. */
export function logprobsOf(value: unknown): CompletionPart[] {
  const { content } = recordOf(value);
  if (!Array.isArray(content)) return [];
  const tokens = content.slice(0, MOST_TOKENS).flatMap((entry): TokenLogprob[] => {
    const token = logprobOf(entry);
    if (token === null) return [];
    const { top_logprobs: top } = recordOf(entry);
    const alternatives = Array.isArray(top)
      ? top.slice(0, MOST_ALTERNATIVES).flatMap((each) => logprobOf(each) ?? [])
      : [];
    return [{ ...token, alternatives }];
  });
  return tokens.length === 0 ? [] : [{ type: 'logprobs', tokens }];
}

function logprobOf(entry: unknown): Logprob | null {
  const { token, logprob, bytes } = recordOf(entry);
  if (typeof token !== 'string' || token.length > LONGEST_TOKEN) return null;
  if (typeof logprob !== 'number' || !Number.isFinite(logprob)) return null;
  return {
    token,
    logprob,
    bytes: Array.isArray(bytes) && bytes.length <= LONGEST_TOKEN && bytes.every(isByte) ? bytes : null,
  };
}

function isByte(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 255;
}

/** The fields of an object; none of any other value. */
export function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

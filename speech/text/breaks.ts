/** Parses values of the SSML 1.1 `break` element. Each returns milliseconds, or null for an invalid value. */

export function strengthMs(value: string): number | null {
  return STRENGTHS_MS.get(value) ?? null;
}

export function timeMs(value: string): number | null {
  const match = /^\+?(\d{1,6}(?:\.\d{1,6})?|\.\d{1,6})(ms|s)$/.exec(value);
  return match === null ? null : Math.round(Number(match[1]) * (match[2] === 's' ? 1000 : 1));
}

const STRENGTHS_MS = new Map([
  ['none', 0],
  ['x-weak', 100],
  ['weak', 250],
  ['medium', 500],
  ['strong', 800],
  ['x-strong', 1200],
]);

export const STRENGTHS = [...STRENGTHS_MS.keys()].join(', ');

/**
 * Converts USD from JSON to nano-dollars, exactly by its decimal digits. Null if negative, not finite, or with more
 * than nine decimals.
 */
export function usdToNano(usd: number): bigint | null {
  if (!Number.isFinite(usd) || usd < 0) return null;
  // Up to 15 digits, the shortest decimal is the client's text.
  const match = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(usd));
  if (!match) return null;
  const [, whole = '', fraction = '', exponent = '0'] = match;
  const shift = 9 + Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  if (shift >= 0) return digits * 10n ** BigInt(shift);
  const divisor = 10n ** BigInt(-shift);
  return digits % divisor === 0n ? digits / divisor : null;
}

/** Exact up to 4 million USD; a double cannot hold more nano-dollars. */
export function nanoToUsd(nano: bigint): number {
  return Number(nano) / 1e9;
}

/** Formats an exact decimal without exponent (0.0000001), for headers and spreadsheets. */
export function nanoToDecimal(nano: bigint): string {
  const digits = (nano < 0n ? -nano : nano).toString().padStart(10, '0');
  const fraction = digits.slice(-9).replace(/0+$/, '');
  return `${nano < 0n ? '-' : ''}${digits.slice(0, -9)}${fraction === '' ? '' : `.${fraction}`}`;
}

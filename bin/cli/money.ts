/** Parses a decimal such as `10` or `2.50`, exact to the nano-dollar; null if it is not a positive amount. */
export function parseUsd(text: string): bigint | null {
  const [, dollars, fraction = ''] = /^(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  if (dollars === undefined) return null;
  const nano = BigInt(dollars) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'));
  return nano > 0n ? nano : null;
}

/** For people: every digit, at least cents. */
export function formatUsd(nano: bigint): string {
  const digits = String(nano < 0n ? -nano : nano).padStart(10, '0');
  const fraction = digits.slice(-9).replace(/0{1,7}$/, '');
  return `${nano < 0n ? '-' : ''}${digits.slice(0, -9)}.${fraction} USD`;
}

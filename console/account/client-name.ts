import { accountText } from '../text/account.ts';

/** Ordered, because later ones also appear in the User-Agent of earlier ones. */
const BROWSERS = [
  ['Edge', /Edg(?:e|A|iOS)?\//],
  ['Opera', /OPR\//],
  ['Firefox', /Firefox\/|FxiOS\//],
  ['Chrome', /Chrome\/|CriOS\//],
  ['Safari', /Safari\//],
] as const;

const SYSTEMS = [
  ['Android', /Android/],
  ['iPhone', /iPhone/],
  ['iPad', /iPad/],
  ['Windows', /Windows/],
  ['macOS', /Mac OS X/],
  ['Linux', /Linux/],
] as const;

/** Returns `Firefox on Windows`, or the raw User-Agent if unknown. */
export function clientName(userAgent: string | null): string {
  if (userAgent === null || userAgent.trim() === '') return accountText.unknownClient;
  const named = (names: readonly (readonly [string, RegExp])[]) => names.find(([, sign]) => sign.test(userAgent))?.[0];
  const browser = named(BROWSERS);
  if (browser === undefined) return userAgent;
  const system = named(SYSTEMS);
  return system === undefined ? browser : accountText.browserOn(browser, system);
}

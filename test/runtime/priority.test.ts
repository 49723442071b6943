import { describe, expect, it } from 'vitest';
import { mayRaisePriority } from '../../runtime/priority.ts';

const status = (capabilities: string): string => `Name:\tnode\nCapPrm:\t0000000000000000\nCapEff:\t${capabilities}\n`;
const limits = (nice: string): string =>
  `Limit                     Soft Limit           Hard Limit           Units\nMax nice priority         ${nice}                   ${nice}\n`;

describe('a raised priority is permitted', () => {
  it.each([
    ['with the capability CAP_SYS_NICE', '0000000000800000', '0', 0, true],
    ['to root', '000001ffffffffff', '0', 0, true],
    ['with a limit that includes -10', '0000000000000000', '30', 0, true],
    ['without a limit', '0000000000000000', 'unlimited', 0, true],
    ['not to others', '0000000000000000', '0', 0, false],
    ['not with other capabilities only', '000001ffff7fffff', '0', 0, false],
    ['not with a limit above -10', '0000000000000000', '29', 0, false],
    ['as far as the limit reaches from a lower priority', '0000000000000000', '25', 5, true],
    ['not without the texts of the system', '', '', 0, false],
  ] as const)('%s', (_, capabilities, nice, niceness, expected) => {
    const texts = { status: capabilities && status(capabilities), limits: nice && limits(nice) };
    expect(mayRaisePriority({ ...texts, niceness })).toBe(expected);
  });
});

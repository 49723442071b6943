import { expect, it } from 'vitest';
import { readReferTo } from '../../sip/referral.ts';

const REPLACES = 'Replaces=consult%40pbx%3Bto-tag%3Dt1%3Bfrom-tag%3Df1';

const read = (headers: string) =>
  readReferTo({ get: (name) => (name === 'Refer-To' ? `<sip:+919833333333@pbx.example?${headers}>` : undefined) });

it.each([REPLACES, `${REPLACES}&Require=replaces`, `Require=replaces&${REPLACES}`])(
  'reads the replaced dialog of a Refer-To with %s',
  (headers) => {
    expect(read(headers)).toEqual({ user: '+919833333333', replaces: 'consult@pbx;to-tag=t1;from-tag=f1' });
  },
);

it.each(['Require=replaces', 'Require=100rel', `${REPLACES}&Require=100rel`, `${REPLACES}&${REPLACES}`])(
  'refuses a Refer-To with %s',
  (headers) => {
    expect(read(headers)).toEqual({ refusal: 501 });
  },
);

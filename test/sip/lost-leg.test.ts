import { describe, expect, test } from 'vitest';
import { dialogHandle } from '../../sip/lost-leg.ts';
import type { SrfSentRequest } from '../../sip/srf-types.ts';

function handleOf(headers: Record<string, string>, invite: SrfSentRequest | null = null) {
  const all: Record<string, string> = {
    From: '<sip:us@192.0.2.1>;tag=ours',
    To: '<sip:peer@192.0.2.7>;tag=theirs',
    'Call-ID': 'one',
    CSeq: '7 INVITE',
    ...headers,
  };
  return dialogHandle({ dialogId: 'one;from-tag=ours', invite, message: { get: (name) => all[name] } });
}

describe('handle of a dialog', () => {
  test('keeps the target and the routes in the order of our requests', () => {
    const Contact = '"Rao <desk>, Asha" <sip:rao@192.0.2.7;transport=tcp>;expires=60';
    const recorded = '"a, <b>" <sip:near.example;lr>;x=1, <sip:far.example;lr>';
    const routes = ['"a, <b>" <sip:near.example;lr>;x=1', '<sip:far.example;lr>'];
    const handle = handleOf({ Contact, 'Record-Route': recorded });
    expect(handle).toMatchObject({ target: 'sip:rao@192.0.2.7;transport=tcp', routes });
    expect(handleOf({ 'Record-Route': recorded }, {} as SrfSentRequest)?.routes).toEqual(routes.toReversed());
  });

  test('accepts a Contact without brackets', () => {
    expect(handleOf({ Contact: 'sip:rao@192.0.2.7;expires=60' })).toMatchObject({ target: 'sip:rao@192.0.2.7' });
  });

  test.each(['', '<', ',<', '"<'])('omits target and routes after many of %j', (part) => {
    const hostile = part.repeat(300_000);
    expect(handleOf({ Contact: hostile, 'Record-Route': hostile })).toMatchObject({ target: null, routes: [] });
  });
});

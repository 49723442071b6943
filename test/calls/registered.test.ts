import { describe, expect, it } from 'vitest';
import { untilTruthy } from '../eventually.ts';
import { AGENT, type Platform, startPlatform } from './platform.ts';

const ACCOUNT = { username: 'tandem', password: 's3cret' };

function startRegistered(): Promise<Platform> {
  return startPlatform({
    carrier: {
      registrar: { expiresS: 300 },
      auth: [
        { ...ACCOUNT, realm: 'proxy', challenge: 407 },
        { ...ACCOUNT, realm: 'carrier', challenge: 401, algorithm: 'SHA-256' },
      ],
    },
    trunk: { ...ACCOUNT, register: true },
  });
}

describe('registered trunk', () => {
  it('registers, places calls, and unregisters when disabled', async () => {
    await using platform = await startRegistered();
    const { carrier } = platform;
    await untilTruthy(() => carrier.bindings.has('tandem'), 'the account is registered');
    const path = `/dialer/trunks/${platform.trunkId}`;
    await untilTruthy(async () => {
      const { data } = (await platform.ask('GET', path)).body as { data: { registration?: { state?: string } } };
      return data.registration?.state === 'registered';
    }, 'the trunk shows it');
    await platform.phone(AGENT, { answer: { status: 486 } });
    const call = await platform.place();
    await platform.ended(call.call_id);
    expect(await platform.call(call.call_id)).toMatchObject({ hangup_cause: 'USER_BUSY' });
    await platform.ask('PATCH', path, { status: 'disabled' });
    await untilTruthy(() => carrier.bindings.size === 0, 'the account is not registered any more');
    expect((await platform.ask('GET', path)).body.data).toMatchObject({ register: true, status: 'disabled' });
  });

  it('unregisters when the server stops', async () => {
    const platform = await startRegistered();
    const { bindings } = platform.carrier;
    await untilTruthy(() => bindings.has('tandem'), 'the account is registered');
    await platform.tandem.stop();
    expect(bindings.size).toBe(0);
    await platform[Symbol.asyncDispose]();
  });
});

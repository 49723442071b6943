import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkDrachtio } from '../../bin/cli/doctor/drachtio.ts';
import { checkPorts } from '../../bin/cli/doctor/ports.ts';
import { findRunningServer } from '../../bin/cli/doctor/server.ts';
import type { Config } from '../../config.ts';
import { checkNumberPlan } from '../../diagnosis/number-plan.ts';
import { startEmbeddedSipServer } from '../../sip/embedded/embedded-sip-server.ts';
import { type Examination, openExamination } from './examination.ts';

const clean: (() => Promise<unknown> | unknown)[] = [];
let examination: Examination;

beforeEach(async () => {
  examination = await openExamination();
});

afterEach(async () => {
  for (const step of clean.splice(0).reverse()) await step();
  await examination[Symbol.asyncDispose]();
});

const checkOwnPorts = async (config: Config) => checkPorts(config, await findRunningServer(config));

describe('doctor on the number plan', () => {
  it('lists the callable countries, and warns about `any`', async () => {
    const { NUMBER_PLAN: some } = await examination.findings(checkNumberPlan, { NUMBER_PLAN: 'IN,US' });
    expect(some).toMatchObject({ status: 'ok', message: 'calls to IN (mobile numbers), US' });
    const { NUMBER_PLAN: any } = await examination.findings(checkNumberPlan, { NUMBER_PLAN: 'any' });
    expect(any).toMatchObject({ status: 'warn' });
  });
});

describe('doctor on ports', () => {
  it('fails when another program uses them', async () => {
    const stranger = createServer((_, response) => void response.end('hello')).listen(0, '127.0.0.1');
    const socket = createSocket('udp4').bind(0, '127.0.0.1');
    clean.push(
      () => stranger.close(),
      () => socket.close(),
    );
    await Promise.all([once(stranger, 'listening'), once(socket, 'listening')]);
    const found = await examination.findings(checkOwnPorts, {
      PORT: String((stranger.address() as AddressInfo).port),
      SIP_PORT: String(socket.address().port),
      // Outside the range of ephemeral ports, such as that of the socket above.
      RTP_PORT_MIN: '20000',
      RTP_PORT_MAX: '20003',
    });
    expect(found['HTTP port']).toMatchObject({ status: 'fail', advice: expect.stringContaining('PORT') });
    expect(found['SIP port']).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('/udp cannot be opened'),
    });
  });

  it('fails when RTP and SIP overlap', async () => {
    const found = await examination.findings(checkOwnPorts, {
      SIP_PORT: '20002',
      RTP_PORT_MIN: '20000',
      RTP_PORT_MAX: '20003',
    });
    expect(found['SIP port']).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('between RTP_PORT_MIN'),
    });
  });
});

describe('doctor on drachtio', () => {
  it('connects, and distinguishes a wrong secret from an unreachable server', async () => {
    const stopped = new AbortController();
    const server = await startEmbeddedSipServer({
      sipHost: '127.0.0.1',
      sipPort: 0,
      transports: ['udp'],
      secret: 'right',
      signal: stopped.signal,
    });
    clean.push(() => server.close());
    const DRACHTIO_PORT = String(server.controlPort);
    const at = { DRACHTIO_HOST: '127.0.0.1', DRACHTIO_PORT };
    expect((await examination.findings(checkDrachtio, { ...at, DRACHTIO_SECRET: 'right' })).drachtio).toMatchObject({
      status: 'ok',
    });
    const wrong = await examination.findings(checkDrachtio, { ...at, DRACHTIO_SECRET: 'wrong' });
    expect(wrong.drachtio).toMatchObject({ status: 'fail', advice: expect.stringContaining('DRACHTIO_SECRET') });
    const ports = await examination.findings(checkOwnPorts, { ...at, DRACHTIO_SECRET: 'wrong' });
    expect(ports['SIP port']).toBeUndefined();
    await server.close();
    const gone = await examination.findings(checkDrachtio, { ...at, DRACHTIO_SECRET: 'right' });
    expect(gone.drachtio).toMatchObject({ status: 'fail', advice: expect.stringContaining('DRACHTIO_PORT') });
  });
});

import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import type { PublicCall } from '../../actors/call-view.ts';
import { conversationOf } from '../../bin/demo/conversation.ts';
import { findWorker } from '../../media/webrtc/worker-binary.ts';
import type { Role } from '../../storage/queries/workspaces.ts';
import { eventually } from '../eventually.ts';
import { callOf, clean, townFor } from '../process/ready-server.ts';
import type { SoftphoneOptions } from '../softphone/softphone.ts';
import { type ConsoleFixture, HOSTILE, startConsole } from './console-fixture.ts';

export const TALKING_ENV = {
  STT_ENGINE: 'pocketsphinx',
  WEBRTC_PORT: '0',
  MEDIASOUP_WORKER_BIN: findWorker().path ?? 'none',
};

export interface TalkingTown extends ConsoleFixture, Awaited<ReturnType<typeof townFor>> {
  place(fields?: Record<string, unknown>): Promise<PublicCall>;
  untilState(callId: string, state: PublicCall['state']): Promise<PublicCall>;
}

/** A console, and two phones whose people speak as soon as they answer, again and again. */
export async function startTalkingTown(
  phones: Partial<Record<'agent' | 'customer', Partial<SoftphoneOptions>>> = {},
): Promise<TalkingTown> {
  const ready = await startConsole(TALKING_ENV);
  const conversation = conversationOf(2);
  const speech = (leg: 'agent' | 'customer') => ({
    audio: { kind: 'samples' as const, samples: conversation.trackOf(leg, { leadMs: 2_000 }), loop: true },
    // A stranger's phone decides what its messages say.
    alterSdp: (sdp: string) => sdp.replace(/^s=.*$/m, `s=${HOSTILE}`),
  });
  const town = await townFor(ready, {
    agent: { ...speech('agent'), ...phones.agent },
    customer: { ...speech('customer'), ...phones.customer },
  });
  return {
    ...ready,
    ...town,
    async place(fields = {}) {
      const numbers = { agent_number: town.agent.user, customer_number: town.customer.user };
      return (await ready.api.post<{ call: PublicCall }>('/dialer/click2call', { ...numbers, ...fields })).call;
    },
    untilState: (callId, state) =>
      eventually(async () => {
        const call = await callOf(ready, callId);
        if (call.state !== state) throw new Error(`the call is ${call.state}`);
        return call;
      }),
  };
}

/** Shows the page what a member with this role sees; the server still knows the owner. */
export async function actAs(page: Page, role: Role): Promise<void> {
  await page.route(
    (url) => url.pathname === '/user',
    async (route) => {
      const response = await route.fetch();
      const body = await response.json();
      const user = body.data.user ?? body.data;
      for (const workspace of user.workspaces) workspace.role = role;
      await route.fulfill({ response, json: body });
    },
  );
}

/** Replaces a response of the server to the page with a refusal. */
export async function refuse(page: Page, path: RegExp, { status, ...error }: Refusal): Promise<void> {
  await page.route(
    (url) => path.test(url.pathname),
    (route) =>
      route.fulfill({ status, json: { success: false, error: true, details: null, request_id: 'req_1', ...error } }),
  );
}

interface Refusal {
  status: number;
  code: string;
  message: string;
}

/** An HTTP server that takes callbacks. */
export async function startReceiver(): Promise<{ url: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    request.resume();
    response.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  clean.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`, requests };
}

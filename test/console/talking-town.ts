import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import type { PublicCall } from '../../actors/call-view.ts';
import { conversationOf } from '../../bin/demo/conversation.ts';
import type { Role } from '../../storage/queries/workspaces.ts';
import { eventually } from '../eventually.ts';
import { callOf, clean, fund, peersOf } from '../process/ready-server.ts';
import type { SoftphoneOptions } from '../softphone/softphone.ts';
import { type ConsoleFixture, HOSTILE, startConsole } from './console-fixture.ts';

export interface TalkingTown extends ConsoleFixture, Awaited<ReturnType<typeof peersOf>> {
  place(fields?: Record<string, unknown>): Promise<PublicCall>;
  untilState(callId: string, state: PublicCall['state']): Promise<PublicCall>;
}

/** A console, and two phones whose people speak as soon as they answer, again and again. */
export async function startTalkingTown(
  phones: Partial<Record<'agent' | 'customer', Partial<SoftphoneOptions>>> = {},
): Promise<TalkingTown> {
  const { url } = await listening((_request, response) =>
    response.setHeader('content-type', 'application/json').end(TRANSCRIPTION),
  );
  const ready = await startConsole({ STT_ENGINE: 'openai', STT_BASE_URL: `${url}/v1`, WEBRTC_PORT: '0' });
  const conversation = conversationOf(2);
  const speech = (leg: 'agent' | 'customer') => ({
    audio: { kind: 'samples' as const, samples: conversation.trackOf(leg, { leadMs: 2_000 }), loop: true },
    // A stranger's phone decides what its messages say.
    alterSdp: (sdp: string) => sdp.replace(/^s=.*$/m, `s=${HOSTILE}`),
  });
  const town = await peersOf(ready, {
    agent: { ...speech('agent'), ...phones.agent },
    customer: { ...speech('customer'), ...phones.customer },
  });
  await fund(ready.sql, ready.workspaceId);
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

/** A transcription server's answer to every utterance. Recognition takes seconds of CPU time, and has tests of its own. */
const TRANSCRIPTION = JSON.stringify({
  text: 'go forward ten meters',
  language: 'english',
  words: ['go', 'forward', 'ten', 'meters'].map((word, n) => ({ word, start: n / 10, end: (n + 1) / 10 })),
});

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
  const { url } = await listening((request, response) => {
    requests.push(request);
    response.writeHead(204).end();
  });
  return { url: `${url}/callback`, requests };
}

async function listening(answer: RequestListener): Promise<{ url: string }> {
  const server = createServer((request, response) => {
    request.resume();
    answer(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  clean.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

import { setTimeout as pause } from 'node:timers/promises';
import { peerAvailable } from '../../test/peers/programs.ts';
import { callWithSipp } from '../../test/peers/sipp.ts';
import type { Random } from './random.ts';
import { CALLBACK_SECRET, DID, post, type Town } from './town.ts';

export interface LoadOptions {
  /** Prefix of the calls' references. */
  round: string;
  calls: number;
  chats: number;
  /** All load starts within this time. */
  seconds: number;
}

const CALLS_OF_SIPP = 2;
const SIPP_SCENARIOS = ['calls-and-hangs-up', 'calls-and-is-hung-up'] as const;

/** Starts calls, chats and sipp calls at random times. Returns one line per violation that no fault excuses. */
export async function playLoad(
  town: Town,
  random: Random,
  { round, calls, chats, seconds }: LoadOptions,
): Promise<string[]> {
  const broken: string[] = [];
  const sometime = () => pause(random.between(0, seconds * 1_000));
  const calling = Array.from({ length: calls }, async (_, index) => {
    await sometime();
    const status = await place(town, random, `${round}-${index}`);
    if (status === 500) broken.push(`a placement was answered with ${status}`);
  });
  const chatting = Array.from({ length: chats }, async () => {
    await sometime();
    const durationMs = random.between(0, 4_000);
    town.models.beforeChat = () => pause(durationMs);
    await chat(random.pick(town.nodes).url).catch(() => {});
  });
  const { sip } = town;
  const count = sip !== null && peerAvailable('sipp') ? CALLS_OF_SIPP : 0;
  const inbound = Array.from({ length: count }, async () => {
    const scenario = random.pick(SIPP_SCENARIOS);
    await sometime();
    const target = { host: '127.0.0.1', port: sip!.sipPort };
    // A fault may end the call before its scenario does.
    await callWithSipp({ scenario, target, number: DID }).catch(() => {});
  });
  await Promise.all([...calling, ...chatting, ...inbound]);
  return broken;
}

/** Places a call as clients should: retries under the same reference after a refused or broken connection or a 503. */
async function place(
  { nodes, agent, customers, receiver }: Town,
  random: Random,
  referenceId: string,
): Promise<number> {
  const body = {
    agent_number: agent.user,
    customer_number: random.pick(customers).user,
    reference_id: referenceId,
    record: random.next() < 0.5,
    callback_url: receiver.url,
    callback_secret: CALLBACK_SECRET,
  };
  for (let tries = 0; tries < 60; tries += 1) {
    const url = random.pick(nodes).url;
    const status = await post(url, '/dialer/click2call', body).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status !== 0 && status !== 503 && status !== 429) return status;
    await pause(500);
  }
  return 0;
}

export async function chat(url: string): Promise<Response> {
  return await post(url, '/v1/chat/completions', { messages: [{ role: 'user', content: 'Good morning' }] });
}

/** Hangs up talks and ringing phones. */
export async function hangUpAll({ sql, nodes }: Town): Promise<void> {
  const live = await sql<{ callId: string }[]>`
    select call_id from calls where state in ('pending', 'initiated', 'bridged') limit 20`;
  const node = nodes.find(({ isUp }) => isUp);
  if (node === undefined) return;
  await Promise.all(live.map(({ callId }) => post(node.url, `/dialer/click2call/${callId}/hangup`).catch(() => null)));
}

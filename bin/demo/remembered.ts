import { setTimeout as sleep } from 'node:timers/promises';
import type { PublicTranscript } from '../../actors/call-view.ts';
import type { Api } from '../cli/api-client.ts';
import { spoken } from '../cli/event-lines.ts';
import type { Screen } from './screen.ts';

type Leg = 'agent' | 'customer';

/** Corrects the transcript, stores it as memories, and checks that a search finds them. */
export async function checkRemembered(
  screen: Screen,
  { api, transcript }: { api: Api; transcript: PublicTranscript },
): Promise<void> {
  const said = { agent: saidBy(transcript, 'agent'), customer: saidBy(transcript, 'customer') };
  if (said.agent === '' || said.customer === '') return screen.check(false, 'no speech of one party was recognised');
  const corrected = await correct(api, said.agent);
  screen.check(
    spellingOf(corrected.text) === spellingOf(said.agent) && /^\p{Lu}.*[.?!]$/u.test(corrected.text),
    `${corrected.model} corrects what the agent said: ${spoken(corrected.text)}`,
  );
  const ids = {
    agent: await remember(api, 'agent', said.agent),
    customer: await remember(api, 'customer', said.customer),
  };
  const query = wordsOfOne(said.customer, said.agent).slice(0, 3).join(' ') || said.customer;
  const { results } = await api.post<{ results: { id: string; score: number }[] }>('/memory/search', { query });
  const scoreOf = (id: string) => results.find((result) => result.id === id)?.score ?? 0;
  screen.check(
    results[0]?.id === ids.customer && scoreOf(ids.customer) > scoreOf(ids.agent),
    `memory: ${spoken(query)} finds what the customer said (score ${scoreOf(ids.customer).toFixed(2)}), ` +
      `before what the agent said (${scoreOf(ids.agent).toFixed(2)})`,
  );
}

function saidBy({ segments }: PublicTranscript, leg: Leg): string {
  const texts = segments.filter((segment) => segment.leg === leg).map(({ text }) => text);
  return texts.join(' ').trim();
}

async function correct(api: Api, text: string): Promise<{ text: string; model: string }> {
  const corrected = { text: '', model: '' };
  type Frame = { model: string; choices: { delta: { content?: string } }[] };
  for await (const frame of api.frames<Frame>('/v1/chat/completions', { text, save_chat: false })) {
    corrected.model = frame.model;
    corrected.text += frame.choices[0]?.delta.content ?? '';
  }
  return corrected;
}

/** Resolves with the memory's id once it is processed. */
async function remember(api: Api, leg: Leg, text: string): Promise<string> {
  const { results } = await api.post<{ results: { id: string }[] }>('/memory/ingest', {
    text,
    title: `Words of the ${leg}`,
    metadata: { leg },
  });
  const { id } = results[0]!;
  for (let status = 'pending'; status === 'pending' || status === 'processing'; await sleep(100)) {
    ({ status } = await api.get<{ status: string }>(`/memory/${id}/status`));
  }
  return id;
}

/** Words of the first leg that the second did not say. */
function wordsOfOne(one: string, other: string): string[] {
  const others = new Set(wordsOf(other));
  return [...new Set(wordsOf(one))].filter((word) => word.length > 2 && !others.has(word));
}

/** Ignores capitals, marks and apostrophes, which corrections add. */
function spellingOf(text: string): string {
  return wordsOf(text.replaceAll(/['’]/g, '')).join(' ');
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{M}\p{N}'’]+/gu) ?? [];
}

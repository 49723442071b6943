import { setTimeout as sleep } from 'node:timers/promises';
import { API_OPTIONS, openApi } from '../api-access.ts';
import { type Command, defineAction } from '../command.ts';
import { requireConfirmation } from '../option-values.ts';
import { fields } from '../terminal.ts';

interface Erasure {
  id: string;
  last4: string;
  status: 'running' | 'completed';
  deleted: Record<string, number>;
  created_at: string;
  completed_at: string | null;
}

const erase = defineAction({
  summary: 'Erase a phone number: delete all calls with it, and what names it. Admins and owners only.',
  parameters: [{ name: 'NUMBER', about: 'the number, in +E.164 or in a notation that a placement accepts' }],
  options: {
    yes: { about: 'confirm the deletion' },
    wait: { about: 'wait until calls that are live have ended and are deleted, too' },
    ...API_OPTIONS,
  },
  async run({ host, values, arguments: [e164 = ''], terminal }) {
    requireConfirmation(values.yes);
    const api = openApi(host, values);
    let erasure = await api.post<Erasure>('/privacy/erasures', { e164 });
    while (values.wait && erasure.status === 'running') {
      terminal.progress(`${erasure.deleted.calls} calls are deleted`);
      await sleep(POLL_MS);
      erasure = await api.get<Erasure>(`/privacy/erasures/${erasure.id}`);
    }
    return { data: { erasure }, text: describe(erasure) };
  },
});

const status = defineAction({
  summary: 'Show an erasure, and what it has deleted.',
  parameters: [{ name: 'ID', about: 'the id that erase printed' }],
  options: API_OPTIONS,
  async run({ host, values, arguments: [id = ''] }) {
    const erasure = await openApi(host, values).get<Erasure>(`/privacy/erasures/${encodeURIComponent(id)}`);
    return { data: { erasure }, text: describe(erasure) };
  },
});

export const deleteCall = defineAction({
  summary: 'Delete a finished call for good, with its recording, transcript and events. Admins and owners only.',
  parameters: [{ name: 'ID', about: 'call_id or reference_id' }],
  options: { yes: { about: 'confirm the deletion' }, ...API_OPTIONS },
  async run({ host, values, arguments: [id = ''] }) {
    requireConfirmation(values.yes);
    const path = `/dialer/click2call/${encodeURIComponent(id)}`;
    const data = await openApi(host, values).delete<{ call_id: string; deleted: Record<string, number> }>(path);
    return { data, text: `Call ${data.call_id} is deleted: ${deletedText(data.deleted)}.` };
  },
});

export const privacyCommand: Command = { actions: { erase, status } };

const POLL_MS = 1_000;

/** Such as `1 calls, 9 events`. */
function deletedText(deleted: Readonly<Record<string, number>>): string {
  const kinds = Object.entries(deleted).filter(([, count]) => count > 0);
  return kinds.map(([kind, count]) => `${count} ${kind.replaceAll('_', ' ')}`).join(', ') || 'nothing was found';
}

function describe({ id, last4, status: state, deleted }: Erasure): string {
  return fields([
    ['erasure', id],
    ['number', `...${last4}`],
    [
      'status',
      state === 'running' ? 'running: calls are live or unfinished; tandem privacy status shows the end' : state,
    ],
    ['deleted', deletedText(deleted)],
  ]);
}

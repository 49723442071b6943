import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { presentCallEvent } from '../../actors/call-view.ts';
import type { CallSegment } from '../../machines/events.ts';
import { listCallEvents } from '../../storage/queries/calls.ts';
import { addSegment, concludeTranscript, failTranscript, openTranscript } from '../../storage/queries/transcripts.ts';
import { recordMoves } from '../storage/record-moves.ts';
import { later, NOW, seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { finish, initiate, seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let caller: Member;
let teammate: Member;
beforeAll(async () => {
  fixture = await createHttpFixture();
  const { workspace } = await seedWorkspace(fixture.sql);
  caller = await fixture.addMemberWith('member', workspace.id);
  teammate = await fixture.addMemberWith('owner', workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id });
});
afterAll(() => fixture[Symbol.asyncDispose]());

const SAID: CallSegment = {
  leg: 'customer',
  utteranceId: 1,
  text: 'an ill disposed young man',
  language: 'en',
  startMs: 2_310,
  endMs: 5_020,
  confidence: 0.875,
  words: [{ word: 'man', startMs: 4_700, endMs: 5_020, confidence: 0.5 }],
};

/** A call whose customer said one sentence, stored as event 3. */
async function transcribedCall(said = SAID) {
  const call = await seedCall(fixture, { by: caller, transcribe: true });
  await initiate(fixture, call.callId);
  await openTranscript(fixture.sql, { callId: call.callId, now: NOW });
  await fixture.sql.begin(async (tx) => {
    await addSegment(tx, call, { segment: said, eventSequence: 3, now: NOW });
    const move = { event: 'transcript.final', state: 'bridged', leg: 'customer', sipStatus: null } as const;
    const moves = [{ ...move, hangupCause: null, detail: null, at: later(200), segment: said }];
    await recordMoves(tx, call.callId, moves);
  });
  return call;
}

const transcriptOf = (id: string, as = caller) => fixture.call('GET', `/dialer/click2call/${id}/transcript`, { as });

describe('transcript of a call', () => {
  it('grows during the call, in the order of speaking', async () => {
    const { callId, referenceId } = await transcribedCall();
    for (const id of [callId, referenceId]) {
      const { status, body } = await transcriptOf(id);
      expect(status).toBe(200);
      expect(body.data).toEqual({
        call_id: callId,
        status: 'in_progress',
        error: null,
        language: 'en',
        segments: [
          {
            leg: 'customer',
            role: 'customer',
            text: 'an ill disposed young man',
            start: 2.31,
            end: 5.02,
            confidence: 0.875,
            language: 'en',
            words: [{ word: 'man', start: 4.7, end: 5.02, confidence: 0.5 }],
          },
        ],
      });
    }
    const earlier = { ...SAID, utteranceId: 2, leg: 'agent', text: 'hello', startMs: 100, endMs: 600 } as const;
    await finish(fixture, callId);
    await concludeTranscript(fixture.sql, { callId, late: [earlier], error: null, now: NOW });
    const { body } = await transcriptOf(callId);
    expect(body.data.status).toBe('completed');
    expect(body.data.segments.map(({ text }: { text: string }) => text)).toEqual(['hello', SAID.text]);
  });

  it('returns the error and the segments so far after a failure', async () => {
    const { callId } = await transcribedCall();
    await failTranscript(fixture.sql, { callId, error: 'OVERLOADED', now: NOW });
    const { body } = await transcriptOf(callId);
    expect(body.data).toMatchObject({ status: 'failed', error: 'OVERLOADED', segments: [{ text: SAID.text }] });
  });

  it('reports status none for a call without transcription', async () => {
    const { callId } = await seedCall(fixture, { by: caller });
    const { body } = await transcriptOf(callId);
    expect(body.data).toEqual({ call_id: callId, status: 'none', error: null, language: null, segments: [] });
  });

  it('belongs, like the recording, to the user who placed the call', async () => {
    const { callId } = await transcribedCall();
    const { status, body } = await transcriptOf(callId, teammate);
    expect([status, body.code]).toEqual([404, 'TRANSCRIPT_NOT_OWNED']);
    expect((await transcriptOf('nothing')).body.code).toBe('CALL_NOT_FOUND');
    expect((await transcriptOf(callId, fixture.owner)).body.code).toBe('CALL_NOT_FOUND');
  });
});

describe('transcript in the events of a call', () => {
  it('appears only for the user who placed the call, with the scope', async () => {
    const { callId } = await transcribedCall();
    const lastEvent = async (as: Member) => {
      const { body } = await fixture.call('GET', `/dialer/click2call/${callId}/events`, { as });
      expect(body.data.events[0].transcript).toBeNull();
      return body.data.events.at(-1);
    };
    const final = { event: 'transcript.final', leg: 'customer', detail: null };
    const transcript = { text: SAID.text, start: 2.31, end: 5.02, confidence: 0.875 };
    expect(await lastEvent(caller)).toMatchObject({ ...final, transcript });
    expect(await lastEvent(teammate)).toMatchObject({ ...final, transcript: null });
    await limitKey(['calls:read']);
    expect(await lastEvent(caller)).toMatchObject({ ...final, transcript: null });
    await limitKey([]);
  });

  it("stays out of other users' streams, stored and live", async () => {
    const { callId } = await transcribedCall();
    await finish(fixture, callId);
    const stored = (await listCallEvents(fixture.sql, { callId })).map(presentCallEvent);
    const streamed = async (as: Member) => {
      const { raw } = await fixture.call('GET', `/dialer/click2call/${callId}/stream`, { as });
      return raw.toString();
    };
    expect(await streamed(caller)).toContain(SAID.text);
    expect(await streamed(teammate)).not.toContain(SAID.text);

    const live = await seedCall(fixture, { by: caller });
    fixture.dialer.onWatch = () => {
      for (const event of stored.slice(1)) fixture.dialer.publish(live.callId, event);
    };
    const { raw } = await fixture.call('GET', `/dialer/click2call/${live.callId}/stream`, { as: teammate });
    fixture.dialer.onWatch = () => undefined;
    expect(raw.toString()).toContain('event: transcript.final');
    expect(raw.toString()).not.toContain(SAID.text);
  });

  it('stays out of the log', () => {
    expect(fixture.logLines.join('')).not.toContain(SAID.text);
  });
});

it('reports on the call whether transcription was requested', async () => {
  for (const transcribe of [true, false]) {
    const { callId } = await seedCall(fixture, { by: caller, transcribe });
    const { body } = await fixture.call('GET', `/dialer/click2call/${callId}`, { as: caller });
    expect(body.data.call.transcribe_requested).toBe(transcribe);
  }
});

async function limitKey(scopes: string[]): Promise<void> {
  await fixture.sql`update api_keys set scopes = ${scopes} where id = ${caller.keyId}`;
}

import { randomUUID } from 'node:crypto';
import {
  type AdmitCallInput,
  admitCall,
  type CallRow,
  type SettleCallInput,
  settleCall,
} from '../../storage/queries/calls.ts';
import { createRecording, updateRecording } from '../../storage/queries/recordings.ts';
import { recordMoves } from '../storage/record-moves.ts';
import { admission, later, NOW, settlement } from '../storage/seed.ts';
import type { HttpFixture, Member } from './fixture.ts';

/** A stored `pending` call of the member, without a dialer. */
export async function seedCall(
  { sql }: HttpFixture,
  { by, ...overrides }: { by: Member } & Partial<AdmitCallInput>,
): Promise<CallRow> {
  const { workspaceId, userId, keyId } = by;
  const input = admission({
    workspaceId,
    createdByUserId: userId,
    apiKeyId: keyId,
    apiKeyName: 'owner key',
    ...overrides,
  });
  return (await admitCall(sql, input)).call;
}

/** Records that the agent's leg is dialed, as event 2. */
export async function initiate({ sql }: HttpFixture, callId: string): Promise<void> {
  const move = {
    event: 'call.initiated',
    state: 'initiated',
    leg: 'agent',
    sipStatus: null,
    hangupCause: null,
  } as const;
  await recordMoves(sql, callId, [{ ...move, at: later(100), detail: null }]);
}

export async function finish(
  { sql }: Pick<HttpFixture, 'sql'>,
  callId: string,
  { recordingId = null, quality = null }: Partial<Pick<SettleCallInput, 'recordingId' | 'quality'>> = {},
): Promise<void> {
  const move = { event: 'call.not_answered', state: 'failed', leg: 'agent', sipStatus: 486 } as const;
  const end = settlement(callId, {
    move: { ...move, hangupCause: 'USER_BUSY', at: later(2000), detail: null },
    ...{ terminalEvent: 'call.not_answered', hangupCause: 'USER_BUSY', leg: 'agent' },
    ...{ error: 'USER_BUSY', errorDetail: 'The agent was busy.' },
    ...{ answerTime: null, endTime: later(2000), totalSeconds: 2 },
    ...{ quality, recordingId },
  });
  await settleCall(sql, end);
}

/** A finished call of the member with an uploaded recording in the object store. */
export async function seedRecordedCall(
  fixture: HttpFixture,
  { by, bytes }: { by: Member; bytes: Buffer },
): Promise<{ call: CallRow; recordingId: string; objectKey: string }> {
  const call = await seedCall(fixture, { by, record: true, referenceId: `ref-${randomUUID()}` });
  const recordingId = randomUUID();
  const objectKey = `recordings/${by.workspaceId}/${recordingId}.wav`;
  await createRecording(fixture.sql, {
    ...{ id: recordingId, callId: call.callId, workspaceId: by.workspaceId, node: call.ownerNode, now: NOW },
  });
  await finish(fixture, call.callId, { recordingId });
  await fixture.putObject(objectKey, bytes);
  const patch = { status: 'uploaded', objectKey, sizeBytes: bytes.length } as const;
  await updateRecording(fixture.sql, { id: recordingId, now: NOW, patch });
  return { call, recordingId, objectKey };
}

import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { inTransaction, type Sql } from '../../storage/database.ts';
import {
  addVoiceSamples,
  beginProcessing,
  type CreateVoiceInput,
  concludeVoice,
  createVoice,
  deleteVoice,
  filesOfDeletedVoices,
  findVoice,
  forgetFilesOfVoice,
  getUndeletedVoice,
  listVoiceSamples,
  listVoices,
  MAX_VOICES_PER_WORKSPACE,
  recordConsent,
  requireRoomForVoice,
  setVoiceSampleKey,
  unfinishedVoices,
  updateVoice,
} from '../../storage/queries/voices.ts';
import { onEveryServer } from './every-server.ts';
import { later, NOW, seedWorkspace } from './seed.ts';

const RECIPE = { engine: 'espeak-ng', character: { pitchSemitones: 1.5 } };
const READY = { status: 'ready', recipe: RECIPE, measures: { pitchHz: 190.25 }, approximate: true } as const;
const FAILED = { status: 'failed', errorCode: 'VOICE_SAMPLE_UNUSABLE', error: 'Nobody speaks in it.' } as const;

onEveryServer('workspace voices', (database) => {
  it('appear in their own workspace only', async () => {
    const { sql, voice } = await seeded(database().sql);
    const key = { id: voice.id, workspaceId: voice.workspaceId };
    expect(await findVoice(sql, key)).toEqual(voice);
    expect(await findVoice(sql, { ...key, id: voice.id.toUpperCase() })).toEqual(voice);
    expect(await findVoice(sql, { ...key, id: 'en-us' })).toBeNull();
    expect(await findVoice(sql, { ...key, workspaceId: randomUUID() })).toBeNull();
    expect(await findVoice(sql, { ...key, id: randomUUID() })).toBeNull();
    expect(voice).toMatchObject({ labels: { gender: 'female', Mood: 'calm' }, status: 'processing', recipe: null });
  });

  it('conclude once with an unchanged recipe', async () => {
    const { sql, voice } = await seeded(database().sql);
    const conclude = (conclusion: typeof READY | typeof FAILED, ms: number) =>
      concludeVoice(sql, voice.id, { conclusion, now: later(ms) });
    expect(await conclude(READY, 1)).toMatchObject({ ...READY, errorCode: null, updatedAt: later(1) });
    expect(await conclude(FAILED, 2)).toBeNull();
    expect(await getUndeletedVoice(sql, voice.id)).toMatchObject({ ...READY, updatedAt: later(1) });
  });

  it('can be processed again after a failure, but not when ready', async () => {
    const { sql, voice } = await seeded(database().sql);
    expect(await beginProcessing(sql, voice.id, { now: NOW })).toBeNull();
    await concludeVoice(sql, voice.id, { conclusion: FAILED, now: NOW });
    expect(await getUndeletedVoice(sql, voice.id)).toMatchObject(FAILED);
    expect(await beginProcessing(sql, voice.id, { now: later(1) })).toMatchObject({
      status: 'processing',
      error: null,
    });
    await concludeVoice(sql, voice.id, { conclusion: READY, now: NOW });
    expect(await beginProcessing(sql, voice.id, { now: NOW })).toBeNull();
  });

  it('appear by tier, ready ones first, then in creation order', async () => {
    const { sql, voice, input } = await seeded(database().sql);
    const second = await createVoice(sql, { ...input, id: randomUUID(), now: later(1) });
    const third = await createVoice(sql, { ...input, id: randomUUID(), now: later(2) });
    await createVoice(sql, { ...input, id: randomUUID(), tier: 'quality' });
    await concludeVoice(sql, third.id, { conclusion: READY, now: NOW });
    const list = async (unready: boolean) =>
      (await listVoices(sql, { workspaceId: input.workspaceId, tier: 'fast', unready })).map(({ id }) => id);
    expect(await list(false)).toEqual([third.id]);
    expect(await list(true)).toEqual([third.id, voice.id, second.id]);
  });

  it('respect the maximum of a hundred, even concurrently', async () => {
    const { sql, input } = await seeded(database().sql);
    for (let made = 1; made < MAX_VOICES_PER_WORKSPACE - 1; made++) {
      await createVoice(sql, { ...input, id: randomUUID() });
    }
    const results = await Promise.allSettled([1, 2, 3].map(() => createVoice(sql, { ...input, id: randomUUID() })));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await expect(requireRoomForVoice(sql, input.workspaceId)).rejects.toMatchObject({ code: 'VOICE_LIMIT_REACHED' });
    const [one] = await listVoices(sql, { workspaceId: input.workspaceId, tier: 'fast', unready: true });
    await deleteVoice(sql, { id: one!.id, workspaceId: input.workspaceId }, { now: NOW });
    await requireRoomForVoice(sql, input.workspaceId);
  });

  it('change only given fields, and not after deletion', async () => {
    const { sql, voice } = await seeded(database().sql);
    const key = { id: voice.id, workspaceId: voice.workspaceId };
    const update = (patch: { name?: string; description?: string | null }) =>
      updateVoice(sql, key, { patch, now: later(5) });
    expect(await update({ name: 'Other' })).toEqual({ ...voice, name: 'Other', updatedAt: later(5) });
    expect(await update({ description: null })).toMatchObject({ name: 'Other', description: null });
    await deleteVoice(sql, key, { now: NOW });
    expect(await update({ name: 'Again' })).toBeNull();
    expect(await updateVoice(sql, { ...key, id: 'x' }, { patch: {}, now: NOW })).toBeNull();
  });

  it('keep one sample per sound, the longest first', async () => {
    const { sql, voice } = await seeded(database().sql);
    const samples = [sample(voice.id, 'a', 4_000), sample(voice.id, 'b', 9_000)];
    expect(await addVoiceSamples(sql, voice.id, { samples, now: NOW })).toHaveLength(2);
    const again = [sample(voice.id, 'b', 9_000), sample(voice.id, 'c', 1_000)];
    expect((await addVoiceSamples(sql, voice.id, { samples: again, now: NOW })).map(({ id }) => id)).toEqual([
      again[1]!.id,
    ]);
    expect(await listVoiceSamples(sql, voice.id)).toMatchObject([
      { durationMs: 9_000, bytes: 5_000_000_000, sha256: Buffer.from('b') },
      { durationMs: 4_000 },
      { durationMs: 1_000 },
    ]);
    expect(await addVoiceSamples(sql, voice.id, { samples: [], now: NOW })).toEqual([]);
  });

  it('lose all speaker data when deleted, and remain until their files are removed', async () => {
    const { sql, voice, consent } = await seeded(database().sql);
    const key = { id: voice.id, workspaceId: voice.workspaceId };
    const added = [sample(voice.id, 'a', 4_000)];
    await addVoiceSamples(sql, voice.id, { samples: added, now: NOW });
    await recordConsent(sql, voice.id, { consent, samples: 1, now: NOW });
    await concludeVoice(sql, voice.id, { conclusion: READY, now: NOW });
    expect(await setVoiceSampleKey(sql, voice.id, 'voices/spoken.mp3')).toEqual({ isSet: true, previousKey: null });
    expect(await filesOfDeletedVoices(sql, { node: 'node-1' })).toEqual([]);
    expect(await deleteVoice(sql, key, { now: later(1) })).toMatchObject({ recipe: null, measures: null });
    expect(await deleteVoice(sql, key, { now: later(2) })).toBeNull();
    expect(await setVoiceSampleKey(sql, voice.id, 'late')).toEqual({ isSet: false, previousKey: null });
    expect(await concludeVoice(sql, voice.id, { conclusion: READY, now: NOW })).toBeNull();
    const files = [{ voiceId: voice.id, keys: [added[0]!.objectKey, 'voices/spoken.mp3'] }];
    expect(await filesOfDeletedVoices(sql, { node: 'node-1' })).toEqual(files);
    expect(await filesOfDeletedVoices(sql, { node: 'node-2' })).toEqual([]);
    await forgetFilesOfVoice(sql, voice.id, { node: 'node-1', now: NOW });
    expect(await filesOfDeletedVoices(sql, { node: 'node-1' })).toEqual([]);
    const consents = await sql`select user_id, address, samples, given_at from voice_consents`;
    expect([...consents]).toEqual([{ userId: consent.userId, address: '192.0.2.7', samples: 1, givenAt: NOW }]);
  });

  it('report the previous sample key for deletion', async () => {
    const { sql, voice } = await seeded(database().sql);
    await setVoiceSampleKey(sql, voice.id, 'one');
    expect(await setVoiceSampleKey(sql, voice.id, 'one')).toEqual({ isSet: true, previousKey: null });
    expect(await setVoiceSampleKey(sql, voice.id, 'two')).toEqual({ isSet: true, previousKey: 'one' });
  });

  it('in progress are found by the node with their samples', async () => {
    const { sql, voice, input } = await seeded(database().sql);
    const pending = await createVoice(sql, { ...input, id: randomUUID(), status: 'pending', now: later(1) });
    const done = await createVoice(sql, { ...input, id: randomUUID(), now: later(2) });
    await concludeVoice(sql, done.id, { conclusion: FAILED, now: NOW });
    const ids = async (node: string) => (await unfinishedVoices(sql, { node })).map(({ id }) => id);
    expect(await ids('node-1')).toEqual([voice.id, pending.id]);
    expect(await ids('node-2')).toEqual([]);
  });

  it('disappear with a failed transaction', async () => {
    const { sql, input } = await seeded(database().sql);
    const id = randomUUID();
    const failing = inTransaction(sql, async (tx) => {
      await createVoice(tx, { ...input, id });
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await getUndeletedVoice(sql, id)).toBeNull();
  });
});

async function seeded(sql: Sql) {
  const { workspace, user } = await seedWorkspace(sql);
  const input: CreateVoiceInput = {
    id: randomUUID(),
    workspaceId: workspace.id,
    tier: 'fast',
    name: 'Asha',
    description: 'Calm.',
    language: 'en',
    labels: { gender: 'female', Mood: 'calm' },
    status: 'processing',
    ownerNode: 'node-1',
    createdByUserId: user.id,
    now: NOW,
  };
  const voice = await createVoice(sql, input);
  const consent = { userId: user.id, apiKeyId: null, address: '192.0.2.7', requestId: 'request-1' };
  return { sql, voice, input, consent };
}

/** More bytes than 32 bits can count. */
function sample(voiceId: string, sound: string, durationMs: number) {
  const id = randomUUID();
  const objectKey = `voices/w/${voiceId}/${id}.wav`;
  return { id, objectKey, durationMs, bytes: 5_000_000_000, sha256: Buffer.from(sound) };
}

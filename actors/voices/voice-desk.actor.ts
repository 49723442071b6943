import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { shuttingDown, TandemError } from '../../machines/errors.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { CatalogueVoice, VoiceCatalogue } from '../../speech/voices/catalogue.ts';
import { languageName } from '../../speech/voices/language-names.ts';
import type { VoiceRecipe } from '../../speech/voices/voice-recipe.ts';
import { inTransaction, type Sql, type Tx } from '../../storage/database.ts';
import type { ObjectStore } from '../../storage/objects.ts';
import { type AuditAction, recordAudit } from '../../storage/queries/audit.ts';
import {
  addVoiceSamples,
  beginProcessing,
  createVoice,
  deleteVoice,
  filesOfDeletedVoices,
  findVoice,
  forgetFilesOfVoice,
  listVoiceSamples,
  listVoices,
  moveVoiceWithoutSamples,
  recordConsent,
  requireRoomForVoice,
  setVoiceSampleKey,
  unfinishedVoices,
  updateVoice,
  type VoiceRow,
} from '../../storage/queries/voices.ts';
import { emitWebhookEvent } from '../../storage/queries/webhook-deliveries.ts';
import type { Deliverer } from '../callbacks/deliverer.ts';
import type { Logger } from '../logger.ts';
import { createReferenceFiles } from './reference-files.ts';
import {
  CLONED_BOUNDS,
  deleteObjects,
  PLENTY_MS,
  PROFESSIONAL_BOUNDS,
  prepareSamples,
  requireEnough,
  storeSamples,
  tooLong,
  voiceFolder,
} from './sample-intake.ts';
import { createVoiceShaper, type VoiceShaperOptions } from './shape-voice.ts';
import { createSpokenSamples, type SpokenSamplesOptions } from './spoken-sample.ts';
import { createVoiceActors } from './voice.actor.ts';
import type { AddSamplesRequest, CreateVoiceRequest, VoiceCaller, VoiceDesk, VoiceView } from './voice-desk.ts';
import { storedLabels, viewOfCatalogue, viewOfRow } from './voice-views.ts';

export interface VoiceDeskOptions extends Pick<VoiceShaperOptions, 'listening' | 'recognition'> {
  sql: Sql;
  synthesis: VoiceShaperOptions['synthesis'] & SpokenSamplesOptions['synthesis'];
  objects: ObjectStore;
  catalogue: VoiceCatalogue;
  deliverer: Pick<Deliverer, 'enqueue'>;
  /** This node: samples are on its disk. */
  node: string;
  tempDir: string;
  clock: Clock;
  logger: Logger;
}

const MOST_UPLOADS = 2;

/** Implements voices on the catalogue, the database and the object store. Reports nothing before it is stored. */
export function createVoiceDesk(options: VoiceDeskOptions): VoiceDesk {
  const { sql, objects, catalogue, deliverer, node, clock, logger } = options;
  const tempDir = join(options.tempDir, 'voices');
  const references = createReferenceFiles({ objects, folder: join(tempDir, 'references'), clock });
  const samples = createSpokenSamples({ ...options, tempDir });
  const shaper = createVoiceShaper({ ...options, tempDir });
  const actors = createVoiceActors({ ...options, shape: shaper.shape });
  const uploads = new Map<number, number>();
  let closed = false;

  const now = () => new Date(clock.now());

  /** @throws TandemError `VOICE_NOT_FOUND` */
  async function requireOwn(key: { id: string; workspaceId: string }): Promise<VoiceRow> {
    const row = await findVoice(sql, key);
    if (row === null) throw notFound();
    return row;
  }

  /** @throws TandemError `VOICE_NOT_EDITABLE` */
  function requireCustom(voiceId: string): void {
    if (catalogue.find(voiceId) === null) return;
    throw new TandemError('VOICE_NOT_EDITABLE', 'Built-in voices cannot be changed.');
  }

  async function withLocalReference({ id, recipe }: { id: string; recipe: VoiceRecipe }): Promise<VoiceRecipe> {
    const { reference } = recipe;
    if (reference === null) return recipe;
    return { ...recipe, reference: { ...reference, path: await references.pathOf(id, reference.path) } };
  }

  /** Node whose samples this node can remove; null: all, because they are in a shared store. */
  const ofNode = objects.isShared ? null : node;

  /** A failure must not prevent the start. Samples on another node's disk are removed by that node. */
  async function removeFiles(
    voiceId: string,
    { keys, ownerNode }: { keys: string[]; ownerNode: string | null },
  ): Promise<void> {
    try {
      for (const key of keys) await objects.delete(key);
      if (ofNode === null || ownerNode === ofNode) await forgetFilesOfVoice(sql, voiceId, { node, now: now() });
    } catch (error) {
      logger.error({ voiceId, err: error }, 'files of a deleted voice will be removed at the next start');
    }
  }

  return {
    async resolve({ workspaceId, voiceId, text = '', like }) {
      if (voiceId === null && like !== undefined) {
        const alike = catalogue.like(like);
        if (alike !== null) return alike;
        throw new TandemError(
          'VOICE_NOT_FOUND',
          `There is no voice for ${like.language}. GET /voices lists the voices.`,
        );
      }
      const known: CatalogueVoice | null = voiceId === null ? catalogue.usualFor(text) : catalogue.find(voiceId, text);
      if (known !== null) return { id: known.id, recipe: known.recipe };
      const row = await requireOwn({ id: voiceId!, workspaceId });
      if (row.status !== 'ready') throw notReady(row);
      return { id: row.id, recipe: await withLocalReference({ id: row.id, recipe: row.recipe as VoiceRecipe }) };
    },

    async list({ workspaceId, tier, unready = false }) {
      const own = await listVoices(sql, { workspaceId, tier, unready });
      return [...own.map(view), ...catalogue.list(tier).map(viewOfCatalogue)];
    },

    async get({ workspaceId, voiceId }) {
      const known = catalogue.find(voiceId);
      return known === null ? view(await requireOwn({ id: voiceId, workspaceId })) : viewOfCatalogue(known);
    },

    async beginUpload({ userId }) {
      if (closed) throw shuttingDown();
      const running = uploads.get(userId) ?? 0;
      if (running >= MOST_UPLOADS) {
        const message = `${MOST_UPLOADS} uploads of yours are under way. Wait for one to end.`;
        throw new TandemError('RATE_LIMITED', message, { retryAfterS: 5 });
      }
      uploads.set(userId, running + 1);
      const folder = join(tempDir, randomUUID());
      let ended: Promise<void> | null = null;
      const end = async () => {
        const left = uploads.get(userId)! - 1;
        if (left === 0) uploads.delete(userId);
        else uploads.set(userId, left);
        // A writer may still be stopping.
        await rm(folder, { recursive: true, force: true, maxRetries: 3 });
      };
      const upload = {
        folder,
        end: () => {
          ended ??= end();
          return ended;
        },
      };
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
      } catch (error) {
        await upload.end();
        throw error;
      }
      return upload;
    },

    async create(request) {
      requireSpeakable(request.language, catalogue);
      await requireRoomForVoice(sql, request.by.workspaceId);
      const row = await (request.samples === null
        ? storeVoice(request, { id: randomUUID(), stored: [] })
        : cloneVoice(request, request.samples));
      return view(row);
    },

    async addSamples(request) {
      requireCustom(request.voiceId);
      const { workspaceId } = request.by;
      const before = await requireOwn({ id: request.voiceId, workspaceId });
      requireTakesSamples(before);
      const prepared =
        request.samples.files.length === 0 ? [] : await prepareSamples(request.samples, PROFESSIONAL_BOUNDS);
      if (closed) throw shuttingDown();
      const stored = await storeSamples(objects, prepared, {
        workspaceId,
        voiceId: before.id,
        signal: request.samples.signal,
      });
      const keys = new Set(stored.map(({ objectKey }) => objectKey));
      try {
        const result = await inTransaction(sql, (tx) => addTo(tx, request, stored));
        for (const { objectKey } of result.added) keys.delete(objectKey);
        if (result.row.status === 'processing') actors.follow({ voiceId: result.row.id, hasSamples: true });
        return { voice: view(result.row), sampleMs: result.totalMs };
      } finally {
        // Duplicates, or all samples if the request failed.
        await deleteObjects(objects, [...keys]);
      }
    },

    async update({ voiceId, patch, by }) {
      requireCustom(voiceId);
      const row = await inTransaction(sql, async (tx) => {
        const key = { id: voiceId, workspaceId: by.workspaceId };
        const updated = await updateVoice(tx, key, { patch, now: now() });
        if (updated === null) throw notFound();
        await note(tx, { action: 'voice.updated', id: updated.id, by, details: { fields: Object.keys(patch) } });
        return updated;
      });
      return view(row);
    },

    async remove({ voiceId, by }) {
      requireCustom(voiceId);
      const { row, keys } = await inTransaction(sql, async (tx) => {
        const deleted = await deleteVoice(tx, { id: voiceId, workspaceId: by.workspaceId }, { now: now() });
        if (deleted === null) throw notFound();
        await note(tx, { action: 'voice.deleted', id: deleted.id, by });
        const files = (await listVoiceSamples(tx, deleted.id)).map(({ objectKey }) => objectKey);
        return { row: deleted, keys: deleted.sampleKey === null ? files : [...files, deleted.sampleKey] };
      });
      actors.drop(row.id);
      references.drop(row.id);
      await removeFiles(row.id, { keys, ownerNode: row.ownerNode });
    },

    async sample({ workspaceId, voiceId }) {
      const known = catalogue.find(voiceId);
      if (known !== null) return await samples.keyOf({ recipe: known.recipe, folder: 'voice-samples' });
      const row = await requireOwn({ id: voiceId, workspaceId });
      if (row.status !== 'ready') return null;
      const recipe = await withLocalReference({ id: row.id, recipe: row.recipe as VoiceRecipe });
      return await samples.keyOf({
        recipe,
        folder: voiceFolder({ workspaceId, voiceId: row.id }),
        async note(key) {
          const { isSet, previousKey } = await setVoiceSampleKey(sql, row.id, key);
          if (previousKey !== null) await deleteObjects(objects, [previousKey]);
          return isSet;
        },
      });
    },

    async start() {
      for (const { voiceId, keys } of await filesOfDeletedVoices(sql, { node: ofNode })) {
        await removeFiles(voiceId, { keys, ownerNode: ofNode });
      }
      const unfinished = await unfinishedVoices(sql, { node });
      for (const { id, status } of unfinished) actors.follow({ voiceId: id, hasSamples: status === 'processing' });
    },

    async close() {
      closed = true;
      actors.close();
      references.close();
      await Promise.all([samples.close(), shaper.close()]);
    },
  };

  async function cloneVoice(
    request: CreateVoiceRequest,
    given: NonNullable<CreateVoiceRequest['samples']>,
  ): Promise<VoiceRow> {
    const prepared = await prepareSamples(given, CLONED_BOUNDS);
    requireEnough(lengthOf(prepared), CLONED_BOUNDS);
    if (closed) throw shuttingDown();
    const id = randomUUID();
    const stored = await storeSamples(objects, prepared, {
      workspaceId: request.by.workspaceId,
      voiceId: id,
      signal: given.signal,
    });
    try {
      return await storeVoice(request, { id, stored });
    } catch (error) {
      await deleteObjects(
        objects,
        stored.map(({ objectKey }) => objectKey),
      );
      throw error;
    }
  }

  async function storeVoice(
    { name, description, language, labels, by }: CreateVoiceRequest,
    { id, stored }: { id: string; stored: Awaited<ReturnType<typeof storeSamples>> },
  ): Promise<VoiceRow> {
    const isCloned = stored.length > 0;
    const { workspaceId } = by;
    const at = now();
    const { row, deliveries } = await inTransaction(sql, async (tx) => {
      const made = await createVoice(tx, {
        id,
        workspaceId,
        tier: isCloned ? 'fast' : 'quality',
        name,
        description,
        language,
        labels: storedLabels(labels),
        status: isCloned ? 'processing' : 'pending',
        ownerNode: node,
        createdByUserId: by.userId,
        now: at,
      });
      if (isCloned) {
        await addVoiceSamples(tx, id, { samples: stored, now: at });
        await recordConsent(tx, id, { consent: by, samples: stored.length, now: at });
      }
      await note(tx, { action: 'voice.created', id, by, details: { samples: stored.length, consent: isCloned } });
      const data = { voice_id: id, name, language };
      return {
        row: made,
        deliveries: await emitWebhookEvent(tx, { workspaceId, event: 'voice.created', data, now: at }),
      };
    });
    for (const delivery of deliveries) void deliverer.enqueue(delivery);
    actors.follow({ voiceId: id, hasSamples: isCloned });
    return row;
  }

  async function addTo(tx: Tx, request: AddSamplesRequest, stored: Awaited<ReturnType<typeof storeSamples>>) {
    const { voiceId, isLast, by } = request;
    const row = await findVoice(tx, { id: voiceId, workspaceId: by.workspaceId }, { lock: true });
    if (row === null) throw notFound();
    requireTakesSamples(row);
    if (row.ownerNode !== node && !(await moveVoiceWithoutSamples(tx, row.id, { node }))) throw elsewhere();
    const added = await addVoiceSamples(tx, row.id, { samples: stored, now: now() });
    const totalMs = lengthOf(await listVoiceSamples(tx, row.id));
    if (totalMs > PROFESSIONAL_BOUNDS.mostMs) throw tooLong(PROFESSIONAL_BOUNDS.mostMs);
    if (isLast) requireEnough(totalMs, PROFESSIONAL_BOUNDS);
    await recordConsent(tx, row.id, { consent: by, samples: added.length, now: now() });
    const details = { samples: added.length, consent: true, complete: isLast };
    await note(tx, { action: 'voice.samples_added', id: row.id, by, details });
    const isComplete = isLast || totalMs >= PLENTY_MS;
    const begun = isComplete ? await beginProcessing(tx, row.id, { now: now() }) : null;
    return { row: begun ?? row, added, totalMs };
  }

  function view(row: VoiceRow): VoiceView {
    return viewOfRow(row, languageName(row.language));
  }

  async function note(
    tx: Tx,
    entry: { action: AuditAction; id: string; by: VoiceCaller; details?: Record<string, unknown> },
  ): Promise<void> {
    const { action, id, by, details = {} } = entry;
    const { workspaceId, requestId } = by;
    const target = { type: 'voice', id };
    await recordAudit(tx, { workspaceId, actor: by, requestId, action, target, details, now: now() });
  }
}

/** @throws TandemError `unsupported_language` */
function requireSpeakable(language: string, catalogue: VoiceCatalogue): void {
  if (catalogue.languages().some((known) => known.language === language)) return;
  const message = `There is no voice of ${JSON.stringify(language.slice(0, 20))}: GET /tts/languages lists the languages.`;
  throw new TandemError('unsupported_language', message);
}

/** @throws TandemError `VOICE_NOT_EDITABLE`, `VOICE_NOT_READY` */
function requireTakesSamples({ tier, status }: VoiceRow): void {
  if (tier !== 'quality') {
    throw new TandemError('VOICE_NOT_EDITABLE', 'A cloned voice accepts no further samples. Create another voice.');
  }
  if (status === 'ready')
    throw new TandemError('VOICE_NOT_EDITABLE', 'The voice is already created. Create another one.');
  if (status === 'processing') {
    throw new TandemError('VOICE_NOT_READY', 'The voice is already being created from its samples.', {
      retryAfterS: 5,
    });
  }
}

function lengthOf(samples: readonly { durationMs: number }[]): number {
  return samples.reduce((sum, { durationMs }) => sum + durationMs, 0);
}

function notFound(): TandemError {
  return new TandemError('VOICE_NOT_FOUND', 'No voice has this id. GET /voices lists the available ones.');
}

function notReady({ status, error }: VoiceRow): TandemError {
  const message = {
    pending: 'The voice waits for samples of its speaker.',
    processing: 'The voice is being made. Try again shortly.',
    failed: `The voice could not be made. ${error}`,
    ready: 'The voice is ready.',
  }[status];
  return new TandemError('VOICE_NOT_READY', message, { details: { status } });
}

function elsewhere(): TandemError {
  const message = 'Another server has the samples of this voice so far. Try again, or send all of them in one request.';
  return new TandemError('VOICE_NOT_READY', message, { retryAfterS: 1 });
}

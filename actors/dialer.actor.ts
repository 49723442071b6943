import { createHash, randomUUID } from 'node:crypto';
import { type ErrorCode, shuttingDown, TandemError } from '../machines/errors.ts';
import type { LegId } from '../machines/events.ts';
import type { ListeningPlane } from '../media/listening-plane.ts';
import type { MediaPlane } from '../media/media-plane.ts';
import { canonicalJson } from '../runtime/canonical-json.ts';
import { type Clock, momentOf } from '../runtime/clock.ts';
import { Gate } from '../runtime/gate.ts';
import { LATE, within } from '../runtime/waiting.ts';
import type { InboundCall, Referral, SipGateway } from '../sip/sip-gateway.ts';
import type { SpeechRecognition } from '../speech/speech-recognition.ts';
import type { Sql } from '../storage/database.ts';
import { heldBy } from '../storage/ledger.ts';
import type { NodeDirectory } from '../storage/nodes/node-directory.ts';
import type { PlacementLimits } from '../storage/queries/call-admission.ts';
import type { CallingLimits } from '../storage/queries/calling-rules.ts';
import {
  type AdmitCallInput,
  type AdmitCallResult,
  admitCalls,
  type CallRow,
  getCall,
  getCallById,
  isFinalState,
  isOwnDialog,
  mayAdmitTogether,
  requireRoomForLeg,
} from '../storage/queries/calls.ts';
import type { InboundDecider } from '../storage/queries/inbound-rules.ts';
import { findMembership } from '../storage/queries/memberships.ts';
import type { NodeReport } from '../storage/queries/nodes.ts';
import { getRecording } from '../storage/queries/recordings.ts';
import { lockWorkspace } from '../storage/queries/workspaces.ts';
import { callbackSecretContext } from '../storage/secret-contexts.ts';
import { last4Of, type SecretBox } from '../storage/secrets.ts';
import type { createCallActors } from './call.actor.ts';
import type { CallFeed } from './call-feed.ts';
import type { CallRegistry, LiveCall } from './call-registry.ts';
import type { CallSoundDesk } from './call-sound.ts';
import { type CallScripts, type CallSpeechDesk, NOTHING_TO_SAY, type SpeechRequest } from './call-speech.ts';
import { presentCall } from './call-view.ts';
import { checkCallbackUrl, isLookupFailure, type Resolve } from './callbacks/callback-url.ts';
import type { Cidr } from './callbacks/public-address.ts';
import type { Dialer, NewLeg, PlaceCallRequest, PlacedCall } from './dialer.ts';
import type { Logger } from './logger.ts';
import type { PhoneDesk } from './phones/phone-desk.ts';
import { createPlacementQueue } from './placement-queue.ts';
import type { RecordingDesk } from './recording.actor.ts';
import type { TrunkWatch } from './trunk-watch.ts';

export interface DialerOptions {
  sql: Sql;
  sip: SipGateway;
  mediaPlane: MediaPlane;
  recognition: Pick<SpeechRecognition, 'liveLoad'>;
  listening: Pick<ListeningPlane, 'warmUp'>;
  secrets: SecretBox;
  registry: CallRegistry;
  feed: CallFeed;
  actors: ReturnType<typeof createCallActors>;
  recordings: RecordingDesk;
  speeches: CallSpeechDesk;
  sounds: CallSoundDesk;
  trunkWatch: TrunkWatch;
  phones: Pick<PhoneDesk, 'unavailable'>;
  /** Limits of the operator. */
  callingLimits: CallingLimits;
  /** By plan of the workspace. Default: 20. */
  placementsPerMinute?: PlacementLimits;
  /** Private networks that callbacks may be sent to. */
  allowCidrs: readonly Cidr[];
  /** Normalises a dialed number to +E.164; null if the number plan does not allow it. */
  readDialedNumber: (dialed: string) => string | null;
  resolve?: Resolve;
  node: string;
  boot: string;
  nodes: Pick<NodeDirectory, 'renew'>;
  clock: Clock;
  logger: Logger;
}

/** The dialer of this node, with inbound calls, REFER and draining. */
export interface NodeDialer extends Dialer {
  readonly isDraining: boolean;
  /**
   * Rejects new placements with 503. Live calls may continue for `graceMs`, then they are hung up. Resolves when all
   * are settled.
   */
  drain(graceMs: number): Promise<void>;
  report(): NodeReport;
  /**
   * Admits an inbound call and dials the agent. The caller is answered when the agent answers, and refused if the call
   * ends before that.
   * @throws TandemError as `place` does
   */
  receive(request: ReceivedCallRequest, call: InboundCall): Promise<void>;
  /**
   * Transfers a call blindly for a phone that sent REFER, and reports the outcome to the phone. Resolves with the
   * status of the response: 202 once the target is being dialed. Never rejects.
   */
  refer(referral: Referral, from: { callId: string; leg: LegId }): Promise<number>;
}

export type ReceivedCallRequest = Omit<
  PlaceCallRequest,
  'placedVia' | 'apiKeyId' | 'apiKeyName' | 'userId' | 'referenceId' | 'metadata' | 'recordingBeep' | 'onMachine'
> & {
  decidedBy: InboundDecider;
};

/** Wait for a placed call to be on its way, before the response that the outcome is unknown. */
const PLACEMENT_TIMEOUT_MS = 10_000;
/** Wait for a hung-up call to be settled, before responding with its current state. */
const HANGUP_TIMEOUT_MS = 8_000;

export function createDialer(options: DialerOptions): NodeDialer {
  const { sql, sip, registry, feed, recordings, clock } = options;
  const admissions = new Set<Promise<unknown>>();
  const placements = createPlacementQueue<AdmitCallInput, AdmitCallResult>({
    clock,
    admit: async (waiting) =>
      await admitCalls(
        sql,
        waiting.map(({ request, turn }) => ({ ...request, turn })),
      ),
    mayJoin: mayAdmitTogether,
  });
  /** By trunk. */
  const addingLegs = new Gate({ inAll: Number.POSITIVE_INFINITY, perLane: 1 });
  let draining = false;
  let wasConnected = sip.state === 'connected';
  sip.onStateChange((state) => {
    wasConnected ||= state === 'connected';
  });

  function requireReady(): void {
    if (draining) throw shuttingDown();
    if (sip.state !== 'connected') {
      if (!wasConnected) {
        throw refused(
          'C2C_NOT_CONFIGURED',
          'The SIP server has been unreachable since the start. Check DRACHTIO_HOST.',
        );
      }
      throw refused('CARRIER_LINE_DOWN', 'The SIP server is not reachable at the moment.');
    }
    // Check before storing the call, so that its reference stays free.
    const { workers, load } = options.mediaPlane.capacity();
    if (workers > 0 && load >= 1) throw refused('no_free_channel', 'The media workers are fully loaded. Try again.');
  }

  /** A transcribed call needs two recognisers from its bridge on, so count those of ringing calls too. */
  function requireRecognisers(): void {
    const ringing = registry.list().filter(({ row, actor }) => {
      return row.transcribeRequested && !actor.getSnapshot().matches({ active: { live: 'bridged' } });
    });
    if (options.recognition.liveLoad(2 * (ringing.length + 1)) <= 1) return;
    const advice = 'Try again, or place the call without transcribe.';
    throw refused('no_free_channel', `The recognizers are fully loaded by live transcription. ${advice}`);
  }

  /** Stores the call and starts its actor, or finds the call of a repeated reference. */
  async function admit(request: PlaceCallRequest, { scripts, isGivenUp, inbound = null, ...place }: Admission) {
    const at = momentOf(clock);
    const { workspaceId } = request;
    const admission = placements.run(workspaceId, {
      ...request,
      ...place,
      createdByUserId: request.userId,
      referenceId: request.referenceId ?? `qc2c-${randomUUID()}`,
      ...sealedSecret(request, options.secrets),
      announceCharacters: scripts.announcement?.script.characters ?? null,
      whisperCharacters: scripts.whisper?.script.characters ?? null,
      ownerNode: options.node,
      ownerBoot: options.boot,
      now: at.at,
      callingLimits: options.callingLimits,
      ...(options.placementsPerMinute && { placementsPerMinute: options.placementsPerMinute }),
      isLineDown: options.trunkWatch.isDown,
    });
    const admitted = await admission.catch((error) => {
      return admittedAnyway(sql, { callId: place.callId, workspaceId }, error);
    });
    const { outcome, call: row, trunk } = admitted;
    if (outcome === 'replayed') return { row, live: null };
    // While the phones ring: on a busy machine the threads may start later than the talk can wait for them.
    if (request.transcribe) options.listening.warmUp();
    const heldNano = admitted.heldNano ?? (await heldFor(row, options));
    const live = options.actors.start(row, { at, heldNano, trunk, scripts, inbound });
    // Without a response the client does not know of the call, so no phone may ring.
    if (isGivenUp?.()) live.actor.send({ type: 'hangup.requested', reason: 'api' });
    return { row, live };
  }

  async function callOf({ workspaceId, callId }: CallTarget): Promise<CallRow> {
    const row = await getCall(sql, { workspaceId, idOrReference: callId });
    if (row) return row;
    throw new TandemError('CALL_NOT_FOUND', 'No call in this workspace has this id or reference_id.');
  }

  async function liveCallOf(target: CallTarget) {
    const row = await callOf(target);
    const live = registry.get(row.callId);
    if (!live) throw new TandemError('CALL_NOT_LIVE', 'The call has ended, or another server runs it.');
    return { row, live };
  }

  /** @throws TandemError as `addLeg` does */
  async function dialLeg(target: CallTarget, { legId, ...leg }: NewLeg & { legId: LegId }) {
    const { row, live } = await liveCallOf(target);
    const { role, mode, endpoint, transfer } = leg;
    if (endpoint.type === 'webrtc') await requireBrowserOf({ ...target, ...endpoint }, options);
    const replaced = row.legs.find((each) => each.legId === transfer?.leg);
    const isStaff = role === 'supervisor' || replaced?.role === 'agent';
    live.guests.set(legId, leg);
    try {
      // Storing the leg takes its channel, so checks for one trunk must not overlap. A browser takes no channel.
      await addingLegs.run(
        async () => {
          if (endpoint.type === 'phone')
            await requireRoomForLeg(sql, {
              ...{ trunkId: row.trunkId, workspaceId: row.workspaceId, number: endpoint.number, isStaff },
              ...{ callingLimits: options.callingLimits, now: momentOf(clock).at },
            });
          await live.control(
            transfer === undefined
              ? { type: 'leg.add', leg: legId, role, mode }
              : { type: 'transfer', target: legId, ...transfer },
          );
        },
        { lane: row.trunkId },
      );
    } catch (error) {
      live.guests.delete(legId);
      throw error;
    }
    const call = presentCall((await getCallById(sql, row.callId)) ?? row);
    const added = call.legs.find(({ leg_id }) => leg_id === legId);
    // The call ended at the same moment.
    if (added === undefined) throw new TandemError('CALL_NOT_LIVE', 'The call has ended.');
    return added;
  }

  return {
    async place(request) {
      requireReady();
      const { workspaceId, agentUserId = null } = request;
      if (agentUserId !== null) await requireBrowserOf({ workspaceId, userId: agentUserId }, options);
      const scripts = await options.speeches.read(request);
      const callbackUrl =
        request.callbackUrl === null ? null : await checkedUrl(request.callbackUrl, 'callback_url', options);
      // Reading the texts and looking up the host may have taken long.
      requireReady();
      if (request.transcribe) requireRecognisers();
      const callId = `call_${randomUUID()}`;
      const asked: { live: LiveCall | null; isGivenUp: boolean } = { live: null, isGivenUp: false };
      const requestHash = hashOf({ ...request, callbackUrl });
      const isGivenUp = () => asked.isGivenUp;
      const admission = admit(request, { callId, callbackUrl, scripts, requestHash, isGivenUp });
      admissions.add(admission);
      const placement = admission
        .finally(() => admissions.delete(admission))
        .then(async ({ row, live }): Promise<PlacedCall> => {
          asked.live = live;
          if (live) return await dialed(live, options);
          return { placed: false, replayed: true, call: presentCall(row) };
        });
      if ((await within(placement, { clock, ms: PLACEMENT_TIMEOUT_MS })) !== LATE) return await placement;
      if (asked.live !== null && hasDialed(asked.live)) {
        options.logger.warn({ callId }, 'call placed before its first move was stored');
        return placed({ ...asked.live.row, state: 'initiated' });
      }
      asked.isGivenUp = true;
      asked.live?.actor.send({ type: 'hangup.requested', reason: 'api' });
      options.logger.error({ callId }, 'call placement not confirmed in time');
      throw new TandemError(
        'C2C_OUTCOME_UNKNOWN',
        `The platform did not respond in time. Check call ${callId} and the agent's phone before you retry.`,
        { details: { call_id: callId } },
      );
    },

    checkCallbackUrl: (url, field) => checkedUrl(url, field, options),

    async checkSpeech(speech) {
      await options.speeches.read(speech);
    },

    async receive({ callbackUrl, callbackSecret, decidedBy, ...request }, call) {
      requireReady();
      const { workspaceId, agentUserId = null } = request;
      if (agentUserId !== null) await requireBrowserOf({ workspaceId, userId: agentUserId }, options);
      const scripts = await scriptsOfRule(request, options);
      requireReady();
      if (call.abandoned.aborted) return;
      const callId = `call_${randomUUID()}`;
      const admission = admit(
        { ...request, ...NOT_PLACED, callbackSecret, referenceId: `in-${randomUUID()}` },
        { callId, callbackUrl, scripts, inbound: call, decidedBy },
      );
      admissions.add(admission);
      const { live } = await admission.finally(() => admissions.delete(admission));
      // Trace only now: messages of calls that are not stored would be lost.
      if (live) call.traceAs({ callId, leg: 'customer' });
      // The caller hung up meanwhile.
      if (call.abandoned.aborted) live?.actor.send({ type: 'hangup.requested', reason: 'caller' });
    },

    async hangup(target) {
      const row = await callOf(target);
      const live = registry.get(row.callId);
      if (!live || isFinalState(row.state)) return presentCall(row);
      live.actor.send({ type: 'hangup.requested', reason: 'api' });
      await within(live.settled, { clock, ms: HANGUP_TIMEOUT_MS });
      return presentCall((await getCallById(sql, row.callId)) ?? row);
    },

    async control(target, control) {
      const { row, live } = await liveCallOf(target);
      await live.control(control);
      return presentCall((await getCallById(sql, row.callId)) ?? row);
    },

    addLeg: (target, leg) => dialLeg(target, { ...leg, legId: `leg_${randomUUID()}` }),

    async refer(referral, { callId, leg }) {
      const live = registry.get(callId);
      const number = options.readDialedNumber(referral.user);
      if (live === undefined || number === null) return live === undefined ? 481 : 484;
      const { replaces } = referral;
      // Two of our calls cannot be joined. The peer would put the new call in the place of its other call with us.
      if (replaces !== null && (await isOwnDialog(sql, replaces.split(';', 1)[0]!))) return 501;
      const legId = `leg_${randomUUID()}`;
      const started = Promise.withResolvers<number>();
      // Do not wait for storage: the target may answer first, and the phone must be notified before its BYE.
      const watching = live.actor.on('moved', ({ move }) => {
        if (move.data?.leg_id !== legId) return;
        if (move.event === 'transfer.started') started.resolve(202);
        else if (move.event === 'transfer.completed') referral.report(200);
        else if (move.event === 'transfer.failed') referral.report(move.sipStatus ?? 480);
        else if (move.event === 'transfer.cancelled') referral.report(487);
      });
      void live.settled.then(() => watching.unsubscribe());
      const transfer = { leg, mode: 'blind', requestedBy: 'refer' } as const;
      const endpoint = { type: 'phone', number } as const;
      const target = { role: 'party', mode: null, endpoint, replaces, transfer, legId } as const;
      dialLeg({ workspaceId: live.row.workspaceId, callId }, target).catch((error) => {
        watching.unsubscribe();
        const code = error instanceof TandemError ? error.code : null;
        if (code === null) options.logger.error({ callId, leg, err: error }, 'transfer of a phone failed');
        else options.logger.info({ callId, leg, code }, 'transfer of a phone refused');
        started.resolve((code !== null && STATUS_OF_REFUSAL[code]) || 503);
      });
      return await started.promise;
    },

    async play(target, { source, legs, isLooped }) {
      const { live } = await liveCallOf(target);
      const { workspaceId } = target;
      live.requireTalk(legs);
      const { signal } = live.abort;
      const { samples, characters } = await options.sounds.make(source, { workspaceId, signal }).catch((error) => {
        throw signal.aborted ? new TandemError('CALL_NOT_LIVE', 'The call has ended.', { cause: error }) : error;
      });
      const playbackId = `play_${randomUUID()}`;
      live.sounds.set(playbackId, samples);
      try {
        await live.control({ type: 'play', playbackId, legs, isLooped, characters });
      } finally {
        live.sounds.delete(playbackId);
      }
      return { playbackId };
    },

    watch: (callId, listener, signal) => feed.watch(callId, listener, signal),

    async refreshRecording(callId) {
      const row = await getCallById(sql, callId);
      if (!row?.recordingId || !isFinalState(row.state)) return false;
      if (row.recordingStatus === 'uploaded' || row.recordingStatus === 'deleted') return false;
      const { recordingId, workspaceId } = row;
      const recording = await getRecording(sql, recordingId);
      // The file is on another node's disk.
      if ((recording?.node ?? row.ownerNode) !== options.node) return false;
      await recordings.retry({ recordingId, callId, workspaceId });
      return (await getRecording(sql, recordingId))?.status !== row.recordingStatus;
    },

    get isDraining() {
      return draining;
    },

    report() {
      const { workers, load } = options.mediaPlane.capacity();
      const canPlaceCalls = !draining && sip.state === 'connected' && workers > 0 && load < 1;
      return { isDraining: draining, liveCalls: registry.list().length, mediaLoad: load, canPlaceCalls };
    },

    async drain(graceMs) {
      draining = true;
      // Calls must also end while the database does not respond.
      await within(Promise.allSettled([options.nodes.renew(), ...admissions]), { clock, ms: PLACEMENT_TIMEOUT_MS });
      const idle = registry.idle();
      if ((await within(idle, { clock, ms: graceMs })) !== LATE) return;
      for (const call of registry.list()) call.actor.send({ type: 'hangup.requested', reason: 'shutdown' });
      await within(idle, { clock, ms: HANGUP_TIMEOUT_MS });
    },
  };
}

interface CallTarget {
  workspaceId: string;
  /** Or its reference. */
  callId: string;
}

interface Admission {
  callId: string;
  callbackUrl: string | null;
  scripts: CallScripts;
  inbound?: InboundCall | null;
  decidedBy?: InboundDecider;
  requestHash?: Buffer;
  /** Whether the client has got no response in time. Default: never. */
  isGivenUp?: () => boolean;
}

/** SIP status for a rejected REFER; 503 for all other codes. */
const STATUS_OF_REFUSAL: Partial<Record<ErrorCode, number>> = {
  destination_not_allowed: 403,
  DESTINATION_BLOCKED: 403,
  DO_NOT_CALL: 403,
  OUTSIDE_CALLING_HOURS: 403,
  DAILY_SPEND_CAP_REACHED: 403,
  CALL_NOT_LIVE: 481,
  LEG_NOT_FOUND: 481,
  TRANSFER_IN_PROGRESS: 491,
};

const NOT_PLACED = {
  placedVia: 'inbound',
  apiKeyId: null,
  apiKeyName: null,
  userId: null,
  callbackUrl: null,
  metadata: null,
} as const;

/**
 * Checks that the user's browser can be dialed.
 * @throws TandemError WEBRTC_NOT_AVAILABLE, MEMBER_NOT_FOUND
 */
async function requireBrowserOf(
  { workspaceId, userId }: { workspaceId: string; userId: number },
  { sql, phones }: DialerOptions,
): Promise<void> {
  if (phones.unavailable !== null) throw new TandemError('WEBRTC_NOT_AVAILABLE', phones.unavailable);
  if ((await findMembership(sql, { workspaceId, userId })) !== null) return;
  throw new TandemError('MEMBER_NOT_FOUND', 'The user of the endpoint is not a member of this workspace.');
}

/** A caller must not be refused because the rule names a voice that was deleted, or an invalid text. */
async function scriptsOfRule(request: SpeechRequest, { speeches, logger }: DialerOptions): Promise<CallScripts> {
  return await speeches.read(request).catch((error) => {
    if (!(error instanceof TandemError)) throw error;
    const { workspaceId } = request;
    logger.warn({ workspaceId, code: error.code }, 'inbound call is connected without its announcement');
    return NOTHING_TO_SAY;
  });
}

/**
 * Finds an admission that was stored although its response was lost, because that call must run. Otherwise rethrows.
 */
async function admittedAnyway(
  sql: Sql,
  { callId, workspaceId }: { callId: string; workspaceId: string },
  error: unknown,
): Promise<AdmitCallResult> {
  if (error instanceof TandemError) throw error;
  // Its transaction may still be running, and locks the workspace until its end.
  await lockWorkspace(sql, workspaceId);
  const call = await getCallById(sql, callId);
  if (call === null) throw error;
  return { outcome: 'admitted', call, heldNano: null, trunk: null };
}

/** Amount held at admission. Zero if it cannot be read; then the hold is checked as soon as the talk begins. */
async function heldFor({ callId, holdId }: CallRow, { sql, logger }: DialerOptions): Promise<bigint> {
  if (holdId === null) return 0n;
  try {
    return (await heldBy(sql, holdId)) ?? 0n;
  } catch (error) {
    logger.warn({ callId, err: error }, 'wallet hold of a call could not be read');
    return 0n;
  }
}

/**
 * Waits until the call is on its way and presents that state, regardless of later ones. Throws if the call was
 * rejected; its reference is then free again.
 */
async function dialed(call: LiveCall, { sql }: DialerOptions): Promise<PlacedCall> {
  if ((await call.initiated) === 'initiated') return placed({ ...call.row, state: 'initiated' });
  const row = (await getCallById(sql, call.row.callId)) ?? call.row;
  if (row.state !== 'rejected') return placed(row);
  throw refused('no_free_channel', 'No media port is free. Try again when a call has ended.');
}

function placed(row: CallRow): PlacedCall {
  return { placed: true, replayed: false, call: presentCall(row) };
}

/** Whether dialing the agent has begun. The journal may not have stored it yet. */
function hasDialed({ actor }: LiveCall): boolean {
  const snapshot = actor.getSnapshot();
  return !snapshot.matches({ active: 'preparing' }) && snapshot.context.outcome?.state !== 'rejected';
}

/** Checks a callback URL and returns it normalised, as it will be stored. */
async function checkedUrl(text: string, field: string, { allowCidrs, resolve }: DialerOptions): Promise<string> {
  const refusedAs = { code: 'INVALID_CALLBACK_URL', field } as const;
  try {
    return (await checkCallbackUrl(text, { allowCidrs, refusedAs, ...(resolve && { resolve }) })).url.href;
  } catch (error) {
    if (!isLookupFailure(error)) throw error;
    throw refused('C2C_CALLBACK_UNREACHABLE', `The host of ${field} cannot be looked up from here. Try again.`);
  }
}

/** Digest of the request's content, without the identity of the client. */
function hashOf({ workspaceId, placedVia, apiKeyId, apiKeyName, userId, ...asked }: PlaceCallRequest): Buffer {
  // The digest of a whole secret would help to guess it.
  const parts = { ...asked, callbackSecret: asked.callbackSecret && last4Of(asked.callbackSecret) };
  return createHash('sha256').update(canonicalJson(parts)).digest();
}

function sealedSecret(
  { callbackSecret, workspaceId }: PlaceCallRequest,
  secrets: SecretBox,
): Pick<CallRow, 'callbackSecretEncrypted' | 'callbackSecretLast4'> {
  if (callbackSecret === null) return { callbackSecretEncrypted: null, callbackSecretLast4: null };
  return {
    callbackSecretEncrypted: secrets.seal(callbackSecret, callbackSecretContext(workspaceId)),
    callbackSecretLast4: last4Of(callbackSecret),
  };
}

const RETRY_AFTER_S = 10;

function refused(code: ErrorCode, message: string): TandemError {
  return new TandemError(code, message, { retryAfterS: RETRY_AFTER_S });
}

import { randomBytes } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import type { LocalAddress } from '../../media/media-plane.ts';
import type { WebRtcPlane } from '../../media/webrtc/webrtc-plane.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { LegDialog } from '../../sip/sip-gateway.ts';
import type { Logger } from '../logger.ts';
import {
  type BrowserDial,
  BrowserLeg,
  BUSY,
  type RingingLeg,
  type RingRequest,
  UNREACHED,
  type Unreached,
} from './browser-leg.ts';
import { Phone } from './phone.ts';
import type { ConnectedPhone, MintedToken, PhoneDesk, PhoneHolder, PhoneOutlet, PhoneRequest } from './phone-desk.ts';
import { type OpenPhoneMedia, openingPhoneMedia } from './phone-media.ts';

export interface NodePhoneDesk extends PhoneDesk {
  mint(holder: PhoneHolder): MintedToken;
  connect(token: string, outlet: PhoneOutlet): ConnectedPhone | null;
  resume(token: string, outlet: PhoneOutlet): ConnectedPhone | null;
  /** Whether the user has a phone here for any call, or a token for one. */
  reaches(user: PhoneUser): boolean;
  /** Rings a user's phones. Never throws: every outcome is a `LegEvent`, emitted only after this returns. */
  dial(dial: BrowserDial): LegDialog;
  /**
   * Rings as `dial` does, and waits for a phone while none can be reached. Calls `onUnreached` when none can, also
   * repeatedly. `openMedia` opens the media on the node of the call.
   */
  ring(
    request: RingRequest,
    options: { openMedia: OpenPhoneMedia; onUnreached: (reason: Unreached) => void },
  ): RingingLeg;
  openingMedia(local: LocalAddress): OpenPhoneMedia;
  dump(): unknown;
}

export type PhoneUser = Pick<PhoneHolder, 'workspaceId' | 'userId' | 'purpose'>;

interface PhoneDeskOptions {
  /** Boot of this node; part of the tokens, so that other nodes can locate their phones. */
  boot: string;
  webRtc: WebRtcPlane;
  clock: Clock;
  logger: Logger;
}

const TOKEN_LIFETIME_MS = 60_000;
/** Limits pages that are reloaded repeatedly: each leaves a phone behind for ten seconds. */
const MOST_PHONES_OF_USER = 10;

export function createPhoneDesk({ boot, webRtc, clock, logger }: PhoneDeskOptions): NodePhoneDesk {
  const newToken = (kind: 'pt' | 'pr') => `${kind}_${boot}.${randomBytes(32).toString('base64url')}`;
  const tokens = new Map<string, PhoneHolder>();
  const phones = new Set<Phone>();
  const legs = new Set<BrowserLeg>();

  function open(holder: PhoneHolder, outlet: PhoneOutlet): ConnectedPhone {
    const phone: Phone = new Phone({ holder, clock, onGone: () => leave(phone) });
    phones.add(phone);
    return attach(phone, outlet);
  }

  function attach(phone: Phone, outlet: PhoneOutlet): ConnectedPhone {
    phone.attach(outlet, newToken('pr'));
    for (const leg of legs) {
      if (phone.leg === null && leg.isRinging && isFor(phone.holder, leg.dial)) leg.ring(phone);
    }
    return {
      holder: phone.holder,
      request: (request) => carryOut(phone, request),
      detach: () => phone.detach(outlet),
      leave: () => leave(phone),
    };
  }

  function leave(phone: Phone): void {
    if (!phones.delete(phone)) return;
    phone.close();
    const { leg } = phone;
    phone.leg = null;
    leg?.lose(phone);
    giveUpUnreached();
  }

  function ring(
    request: RingRequest,
    options: { openMedia: OpenPhoneMedia; onUnreached: ((reason: Unreached) => void) | null },
  ): RingingLeg {
    const leg: BrowserLeg = new BrowserLeg({ dial: request, ...options, logger, onOver: () => void legs.delete(leg) });
    legs.add(leg);
    setImmediate(() => {
      for (const phone of phones) {
        if (leg.isRinging && phone.leg === null && isFor(phone.holder, request)) leg.ring(phone);
      }
      giveUpUnreached();
    });
    return leg;
  }

  /** Gives up waiting legs whose user has no phone here, connected or about to connect. */
  function giveUpUnreached(): void {
    for (const leg of [...legs]) {
      if (!leg.isWaiting || [...tokens.values()].some((holder) => isFor(holder, leg.dial))) continue;
      const isBusy = [...phones].some(({ holder }) => isFor(holder, leg.dial));
      leg.giveUp(isBusy ? BUSY : UNREACHED);
    }
  }

  async function carryOut(phone: Phone, request: PhoneRequest): Promise<object> {
    const { leg } = phone;
    if (leg === null || leg.dial.call.call_id !== request.callId) throw callOver();
    switch (request.type) {
      case 'answer': {
        const media = await leg.answer(phone);
        if (media === null) throw callOver();
        return { router_rtp_capabilities: media.rtpCapabilities };
      }
      case 'decline':
      case 'hangup':
        leg.hangUpBy('NORMAL_CLEARING');
        return {};
      case 'dtmf':
        leg.press(request.digit, request.durationMs);
        return {};
      default:
        if (leg.media === null) throw new TandemError('VALIDATION_FAILED', 'Answer the call first.');
        return await leg.media.carryOut(request);
    }
  }

  return {
    get unavailable() {
      return webRtc.unavailable;
    },

    mint(holder) {
      const { unavailable } = webRtc;
      if (unavailable !== null) throw new TandemError('WEBRTC_NOT_AVAILABLE', unavailable);
      const token = newToken('pt');
      tokens.set(token, holder);
      const timer = clock.setTimeout(() => {
        if (tokens.delete(token)) giveUpUnreached();
      }, TOKEN_LIFETIME_MS) as { unref?: () => void };
      timer.unref?.();
      return { token, expiresAt: new Date(clock.now() + TOKEN_LIFETIME_MS) };
    },

    connect(token, outlet) {
      const holder = tokens.get(token);
      if (holder === undefined) return null;
      tokens.delete(token);
      const own = [...phones].filter((phone) => phone.holder.userId === holder.userId);
      if (own.length >= MOST_PHONES_OF_USER) {
        throw new TandemError('RATE_LIMITED', `The user has ${MOST_PHONES_OF_USER} phones connected. Close one first.`);
      }
      return open(holder, outlet);
    },

    resume(token, outlet) {
      const phone = [...phones].find(({ resumeToken }) => resumeToken === token);
      return phone === undefined ? null : attach(phone, outlet);
    },

    dial: ({ localMedia, ...request }) =>
      ring(request, { openMedia: openingPhoneMedia(webRtc, localMedia), onUnreached: null }),
    ring,
    openingMedia: (local) => openingPhoneMedia(webRtc, local),

    reaches: (user) =>
      [...tokens.values(), ...[...phones].map(({ holder }) => holder)].some(
        (holder) => isOf(holder, user) && holder.callId === null,
      ),

    dump: () => ({
      tokens: tokens.size,
      phones: [...phones].map(({ holder: { credentials: _, ...holder }, leg }) => ({
        ...holder,
        call: leg?.call?.call_id ?? null,
      })),
      legs: legs.size,
    }),
  };
}

function isFor(holder: PhoneHolder, dial: RingRequest): boolean {
  return isOf(holder, dial) && (holder.callId === null || holder.callId === dial.call.call_id);
}

function isOf(holder: PhoneHolder, { workspaceId, userId, purpose }: PhoneUser): boolean {
  return holder.workspaceId === workspaceId && holder.userId === userId && holder.purpose === purpose;
}

function callOver(): TandemError {
  return new TandemError('CALL_NOT_LIVE', 'The phone has no such call, or the call has ended.');
}

/** Null for an invalid token. */
export function homeOfToken(token: string): string | null {
  return /^p[tr]_([^.]+)\./.exec(token)?.[1] ?? null;
}

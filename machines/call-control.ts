import {
  type GuestRole,
  isLegName,
  type LegId,
  type LegName,
  type SupervisionMode,
  type Transfer,
  type TransferMode,
  type TransferRequester,
} from './events.ts';

/** Controls of a live call and their effect: serialisable data and pure functions. */

export type CallControl =
  | { type: 'mute'; leg: LegId }
  | { type: 'unmute'; leg: LegId }
  /**
   * The leg hears music or silence, and the others do not hear it. The re-INVITE signals hold (RFC 3264 §8.4). On
   * `resume` the machine sets `from` to what the held leg heard.
   */
  | { type: 'hold'; leg: LegId; music: boolean }
  | { type: 'resume'; leg: LegId; from?: 'music' | 'silence' }
  /** Sends key presses to the leg. For the format of `digits` see `KeyPresses` of the media plane. */
  | { type: 'dtmf'; leg: LegId; digits: string; durationMs: number }
  /**
   * Plays a sound to legs, mixed with the audio that they hear. The media port finds the sound by `playbackId`.
   * `characters` is the billed length of a text; null for an audio file.
   */
  | { type: 'play'; playbackId: string; legs: readonly LegId[]; isLooped: boolean; characters: number | null }
  | { type: 'play.stop'; playbackId: string }
  /** The recording continues with silence. */
  | { type: 'recording.pause' }
  | { type: 'recording.resume' }
  /** Changes a supervisor's mode. The machine sets `from` to the previous mode. */
  | { type: 'supervise'; leg: LegId; mode: SupervisionMode; from?: SupervisionMode }
  /** Dials a leg that replaces `leg` when it answers (blind) or on `transfer.complete` (attended). */
  | { type: 'transfer'; leg: LegId; target: LegId; mode: TransferMode; requestedBy?: TransferRequester }
  | { type: 'transfer.complete'; target?: LegId }
  /** Hangs up the target and restores the talk. With `target`, only of the transfer to that leg. */
  | { type: 'transfer.cancel'; target?: LegId }
  /** Dials one more leg. It joins the talk when it answers. */
  | { type: 'leg.add'; leg: LegId; role: GuestRole; mode: SupervisionMode | null }
  | { type: 'leg.drop'; leg: LegId };

/** Controls that change how parties are connected, not which parties exist. */
export type TalkControl = Exclude<
  CallControl,
  { type: 'leg.add' | 'leg.drop' | 'transfer' | 'transfer.complete' | 'transfer.cancel' }
>;

/** Connection state of the parties during the talk. An added leg without an entry is neither muted nor on hold. */
export interface Talk {
  muted: Readonly<Record<LegId, boolean>>;
  /** Audio for a leg on hold; null if it is not on hold. */
  held: Readonly<Record<LegId, 'music' | 'silence' | null>>;
  isRecordingPaused: boolean;
  /** Added legs that have answered: the mode of a supervisor, null for a third party. */
  guests: Readonly<Record<LegId, SupervisionMode | null>>;
  /** Own legs that have left because another leg takes their place. */
  left: readonly LegName[];
  /** Added legs that took a place. */
  standIns: Readonly<Record<LegId, LegName>>;
  transfer: Transfer | null;
}

export const OPEN_TALK: Talk = {
  muted: { agent: false, customer: false },
  held: { agent: null, customer: null },
  isRecordingPaused: false,
  guests: {},
  left: [],
  standIns: {},
  transfer: null,
};

export function isHeld({ held }: Talk, leg: LegId): boolean {
  return (held[leg] ?? null) !== null;
}

export type ControlRefusal =
  /** The parties are not bridged yet, or no longer. */
  | 'CALL_NOT_LIVE'
  /** The leg does not exist or has not answered yet. */
  | 'LEG_NOT_FOUND'
  | 'TOO_MANY_LEGS'
  | 'TRANSFER_IN_PROGRESS'
  /** No transfer is in progress, or it cannot be completed. */
  | 'TRANSFER_NOT_FOUND'
  | 'TRANSFER_NOT_ANSWERED'
  /** No media port is free for another leg. */
  | 'no_free_channel'
  | 'RECORDING_UNAVAILABLE'
  /** The peer has put the call on hold, so it would not hear keys or a sound. */
  | 'LEG_NOT_LISTENING'
  | 'PLAYBACK_NOT_FOUND'
  | 'CONTROL_BUSY'
  | 'INTERNAL';

export function talkAfter(talk: Talk, control: TalkControl): Talk {
  switch (control.type) {
    case 'mute':
    case 'unmute':
      return { ...talk, muted: { ...talk.muted, [control.leg]: control.type === 'mute' } };
    case 'hold':
    case 'resume':
      return { ...talk, held: { ...talk.held, [control.leg]: heldWith(control) } };
    case 'recording.pause':
    case 'recording.resume':
      return { ...talk, isRecordingPaused: control.type === 'recording.pause' };
    case 'supervise':
      return { ...talk, guests: { ...talk.guests, [control.leg]: control.mode } };
    case 'dtmf':
    case 'play':
    case 'play.stop':
      return talk;
  }
}

/** Adds the previous state to the control, so that it can be undone. */
export function withPast(talk: Talk, control: TalkControl): TalkControl {
  if (control.type === 'supervise') {
    const from = talk.guests[control.leg];
    return from ? { ...control, from } : control;
  }
  const held = control.type === 'resume' ? talk.held[control.leg] : null;
  return control.type === 'resume' && held ? { ...control, from: held } : control;
}

/** Adds a leg that has answered. */
export function talkWith(talk: Talk, leg: LegId, mode: SupervisionMode | null): Talk {
  return { ...talk, guests: { ...talk.guests, [leg]: mode } };
}

/** Removes an added leg. */
export function talkWithout(talk: Talk, leg: LegId): Talk {
  const without = <Value>(record: Readonly<Record<LegId, Value>>) =>
    Object.fromEntries(Object.entries(record).filter(([id]) => id !== leg));
  return { ...talk, muted: without(talk.muted), held: without(talk.held), guests: without(talk.guests) };
}

/** The legs that a control applies to; empty if it applies to the call. */
export function legsOf(control: CallControl): readonly LegId[] {
  if (control.type === 'play') return control.legs;
  return 'leg' in control ? [control.leg] : [];
}

export function isTalking(talk: Talk, leg: LegId): boolean {
  return isLegName(leg) ? !talk.left.includes(leg) : Object.hasOwn(talk.guests, leg);
}

/** The control that undoes a failed one; null if there is nothing to undo. */
export function oppositeOf(control: TalkControl): TalkControl | null {
  switch (control.type) {
    case 'mute':
    case 'unmute':
      return { type: control.type === 'mute' ? 'unmute' : 'mute', leg: control.leg };
    case 'hold':
      return { type: 'resume', leg: control.leg };
    case 'resume':
      return { type: 'hold', leg: control.leg, music: control.from !== 'silence' };
    case 'recording.pause':
      return { type: 'recording.resume' };
    case 'recording.resume':
      return { type: 'recording.pause' };
    case 'supervise':
      return control.from === undefined ? null : { ...control, mode: control.from, from: control.mode };
    case 'dtmf':
    case 'play':
    case 'play.stop':
      return null;
  }
}

/** Whether the control changes nothing. It then succeeds without an event. */
export function isInEffect(talk: Talk, control: TalkControl): boolean {
  switch (control.type) {
    case 'mute':
    case 'unmute':
      return (talk.muted[control.leg] ?? false) === (control.type === 'mute');
    case 'hold':
    case 'resume':
      return (talk.held[control.leg] ?? null) === heldWith(control);
    case 'recording.pause':
    case 'recording.resume':
      return talk.isRecordingPaused === (control.type === 'recording.pause');
    case 'supervise':
      return talk.guests[control.leg] === control.mode;
    case 'dtmf':
    case 'play':
    case 'play.stop':
      return false;
  }
}

function heldWith(control: Extract<CallControl, { type: 'hold' | 'resume' }>): 'music' | 'silence' | null {
  if (control.type === 'resume') return null;
  return control.music ? 'music' : 'silence';
}

interface ControlMove {
  event: string;
  state: 'bridged';
  leg?: LegName | null;
  data?: Readonly<Record<string, unknown>> | null;
}

export function moveOfControl(control: TalkControl): ControlMove {
  switch (control.type) {
    case 'mute':
      return { event: 'call.muted', state: 'bridged', ...legFields(control.leg) };
    case 'unmute':
      return { event: 'call.unmuted', state: 'bridged', ...legFields(control.leg) };
    case 'hold':
      return { event: 'call.held', state: 'bridged', ...legFields(control.leg, { music: control.music }) };
    case 'resume':
      return { event: 'call.resumed', state: 'bridged', ...legFields(control.leg) };
    case 'recording.pause':
      return { event: 'recording.paused', state: 'bridged' };
    case 'recording.resume':
      return { event: 'recording.resumed', state: 'bridged' };
    case 'supervise':
      return { event: 'supervision.changed', state: 'bridged', data: { leg_id: control.leg, mode: control.mode } };
    case 'dtmf':
      return { event: 'dtmf.sent', state: 'bridged', ...legFields(control.leg, { digits: control.digits }) };
    case 'play': {
      const { legs, playbackId, characters } = control;
      const data = { playback_id: playbackId, legs, ...(characters !== null && { characters }) };
      return { event: 'playback.started', state: 'bridged', data };
    }
    case 'play.stop':
      return moveOfPlaybackEnd({ playbackId: control.playbackId, end: 'stopped' });
  }
}

export function moveOfPlaybackEnd({ playbackId, end }: { playbackId: string; end: 'played' | 'stopped' }): ControlMove {
  return { event: 'playback.finished', state: 'bridged', data: { playback_id: playbackId, reason: end } };
}

/** Names the leg of an event: `leg` for agent and customer, `leg_id` in the data for an added leg. */
export function legFields(
  leg: LegId,
  data: Readonly<Record<string, unknown>> | null = null,
): { leg: LegName | null; data: Readonly<Record<string, unknown>> | null } {
  if (isLegName(leg)) return { leg, data };
  return { leg: null, data: { leg_id: leg, ...data } };
}

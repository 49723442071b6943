import type { LegName } from './events.ts';

/** What somebody may ask of a live call, and what it changes: plain data and pure functions. */

export type CallControl =
  /** The other party does not hear the leg. */
  | { type: 'mute'; leg: LegName }
  | { type: 'unmute'; leg: LegName }
  /** The leg hears music or nothing and is not heard; its peer is told so (RFC 3264 §8.4). */
  | { type: 'hold'; leg: LegName; music: boolean }
  | { type: 'resume'; leg: LegName }
  /** Key presses to the leg; `digits` as `KeyPresses` of the media plane has them. */
  | { type: 'dtmf'; leg: LegName; digits: string; durationMs: number }
  /** The recording goes on with silence. */
  | { type: 'recording.pause' }
  | { type: 'recording.resume' };

/** How the two parties are to be connected while they talk. */
export interface Talk {
  muted: Readonly<Record<LegName, boolean>>;
  /** What a leg on hold hears; null while it is not. */
  held: Readonly<Record<LegName, 'music' | 'silence' | null>>;
  isRecordingPaused: boolean;
}

export const OPEN_TALK: Talk = {
  muted: { agent: false, customer: false },
  held: { agent: null, customer: null },
  isRecordingPaused: false,
};

/** Why a control did not happen. */
export type ControlRefusal =
  /** The parties do not talk: they are not bridged yet, or not any more. */
  | 'CALL_NOT_LIVE'
  /** The call is not being recorded. */
  | 'RECORDING_UNAVAILABLE'
  /** The peer of the leg has the call on hold, so that keys would not be heard. */
  | 'LEG_NOT_LISTENING'
  /** Too many key presses of the leg wait for their turn. */
  | 'CONTROL_BUSY'
  /** The media plane could not do it. */
  | 'INTERNAL';

export function talkAfter(talk: Talk, control: CallControl): Talk {
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
    case 'dtmf':
      return talk;
  }
}

/** What undoes a control that did not happen; null where nothing is left of it. */
export function oppositeOf(control: CallControl): CallControl | null {
  switch (control.type) {
    case 'mute':
    case 'unmute':
      return { type: control.type === 'mute' ? 'unmute' : 'mute', leg: control.leg };
    case 'hold':
      return { type: 'resume', leg: control.leg };
    case 'resume':
      return { type: 'hold', leg: control.leg, music: true };
    case 'recording.pause':
      return { type: 'recording.resume' };
    case 'recording.resume':
      return { type: 'recording.pause' };
    case 'dtmf':
      return null;
  }
}

/** Whether the talk is as the control wants it already, so that nothing happens and nothing is told. */
export function isInEffect(talk: Talk, control: CallControl): boolean {
  switch (control.type) {
    case 'mute':
    case 'unmute':
      return talk.muted[control.leg] === (control.type === 'mute');
    case 'hold':
    case 'resume':
      return talk.held[control.leg] === heldWith(control);
    case 'recording.pause':
    case 'recording.resume':
      return talk.isRecordingPaused === (control.type === 'recording.pause');
    case 'dtmf':
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
  leg?: LegName;
  data?: Readonly<Record<string, unknown>>;
}

/** The entry of the event log for a control that happened. */
export function moveOfControl(control: CallControl): ControlMove {
  switch (control.type) {
    case 'mute':
      return { event: 'call.muted', state: 'bridged', leg: control.leg };
    case 'unmute':
      return { event: 'call.unmuted', state: 'bridged', leg: control.leg };
    case 'hold':
      return { event: 'call.held', state: 'bridged', leg: control.leg, data: { music: control.music } };
    case 'resume':
      return { event: 'call.resumed', state: 'bridged', leg: control.leg };
    case 'recording.pause':
      return { event: 'recording.paused', state: 'bridged' };
    case 'recording.resume':
      return { event: 'recording.resumed', state: 'bridged' };
    case 'dtmf':
      return { event: 'dtmf.sent', state: 'bridged', leg: control.leg, data: { digits: control.digits } };
  }
}

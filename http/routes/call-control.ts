import { type Static, Type } from 'typebox';
import type { CallControl } from '../../actors/dialer.ts';
import { TandemError } from '../../machines/errors.ts';
import type { LegId } from '../../machines/events.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { type Principal, principalOf, requireAccess } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { CallParams } from '../schemas/call.ts';
import { REFUSALS, shared, success, successOf } from '../schemas/envelope.ts';

const TAGS = ['click-to-call'];
const CallData = Type.Object({ call: shared('Call') });

const LegField = Type.String({
  description: 'Leg to control: `agent`, `customer`, or the leg_id of another leg that has answered.',
  examples: ['agent'],
});
const LegBody = Type.Object({ leg: LegField });
const DigitsBody = Type.Object({
  leg: { ...LegField, description: 'Leg that receives the digits: `agent`, `customer` or a leg_id.' },
  digits: Type.String({
    minLength: 1,
    maxLength: 64,
    description: 'Keys to press: `0` to `9`, `*`, `#` and `A` to `D`. `w` waits half a second, `W` one second.',
    examples: ['1w2#'],
  }),
  duration_ms: Type.Optional(
    Type.Integer({ minimum: 60, maximum: 2000, default: 160, description: 'How long each key is held, in ms.' }),
  ),
});

const HoldBody = Type.Object({
  leg: { ...LegField, description: 'Leg to put on hold: `agent`, `customer` or a leg_id.' },
  music: Type.Optional(
    Type.Boolean({ default: true, description: 'True: the leg hears music. False: it hears silence.' }),
  ),
});

interface ControlRoute<Body> {
  path: string;
  operationId: string;
  summary: string;
  description: string;
  body: (typeof LegBody | typeof HoldBody | typeof DigitsBody) | null;
  control: (body: Body) => CallControl;
}

/** Routes that control a live call. Each responds once the control is carried out and logged. */
export function callControlRoutes(
  app: HttpApp,
  {
    context: { dialer },
    findCall,
  }: { context: HttpContext; findCall: (id: string, principal: Principal) => Promise<CallRow> },
): void {
  function route<Body>({ path, body, control, ...documented }: ControlRoute<Body>): void {
    app.post<{ Params: { id: string }; Body: Body }>(
      `/dialer/click2call/:id/${path}`,
      {
        config: { access: 'writer' },
        schema: {
          tags: TAGS,
          ...documented,
          params: CallParams,
          ...(body !== null && { body }),
          response: { 200: successOf(CallData, 'The call, after it happened.'), ...REFUSALS },
        },
      },
      async (request) => {
        const principal = principalOf(request);
        const named = control(request.body as Body);
        const call = await findCall(request.params.id, principal);
        const wanted = 'leg' in named ? { ...named, leg: legInPlace(call, named.leg) } : named;
        requireControlOf(call, { legs: 'leg' in wanted ? [wanted.leg] : [], principal });
        const target = { workspaceId: principal.workspaceId, callId: call.callId };
        return success({ call: await dialer.control(target, wanted) });
      },
    );
  }

  route<Static<typeof LegBody>>({
    path: 'mute',
    operationId: 'muteCallLeg',
    summary: 'Mute a leg',
    description:
      'Makes a leg inaudible to the others; the leg still hears them. Adds the event `call.muted`. A recording and a transcript still contain the muted leg. A leg that is muted already stays muted. Tandem extension.',
    body: LegBody,
    control: ({ leg }) => ({ type: 'mute', leg: legOf(leg) }),
  });
  route<Static<typeof LegBody>>({
    path: 'unmute',
    operationId: 'unmuteCallLeg',
    summary: 'Unmute a leg',
    description: 'Makes a muted leg audible again. Adds the event `call.unmuted`. Tandem extension.',
    body: LegBody,
    control: ({ leg }) => ({ type: 'unmute', leg: legOf(leg) }),
  });
  route<Static<typeof HoldBody>>({
    path: 'hold',
    operationId: 'holdCallLeg',
    summary: 'Put a leg on hold',
    description:
      'Puts a leg on hold: it hears music or silence, and neither party hears the other. The phone of the leg is notified (a=sendonly, RFC 3264). Adds the event `call.held`. Talk time is billed during the hold. Tandem extension.',
    body: HoldBody,
    control: ({ leg, music = true }) => ({ type: 'hold', leg: legOf(leg), music }),
  });
  route<Static<typeof LegBody>>({
    path: 'resume',
    operationId: 'resumeCallLeg',
    summary: 'Take a leg off hold',
    description: 'Reconnects a leg that is on hold. Adds the event `call.resumed`. Tandem extension.',
    body: LegBody,
    control: ({ leg }) => ({ type: 'resume', leg: legOf(leg) }),
  });
  route<Static<typeof DigitsBody>>({
    path: 'dtmf',
    operationId: 'sendCallDigits',
    summary: 'Send DTMF digits',
    description:
      'Presses keys on one leg, for example to get through a voice menu. The digits are sent as telephone events (RFC 4733), or as tones if the peer did not negotiate them. The response arrives after the last digit. The digits are kept in the event log. Adds the event `dtmf.sent`; digits that a party presses add `dtmf.received`. Tandem extension.',
    body: DigitsBody,
    control: ({ leg, digits, duration_ms: durationMs = 160 }) => {
      if (!DIGITS.test(digits)) {
        throw new TandemError('INVALID_DIGITS', 'digits may contain 0 to 9, *, #, A to D, w and W only.');
      }
      return { type: 'dtmf', leg: legOf(leg), digits, durationMs };
    },
  });
  route<unknown>({
    path: 'recording/pause',
    operationId: 'pauseCallRecording',
    summary: 'Pause the recording',
    description:
      'Records silence until the recording is resumed. The recording keeps its length, and the events `recording.paused` and `recording.resumed` mark the gap. A transcript continues, and digits that a party presses are still logged as `dtmf.received`. Tandem extension.',
    body: null,
    control: () => ({ type: 'recording.pause' }),
  });
  route<unknown>({
    path: 'recording/resume',
    operationId: 'resumeCallRecording',
    summary: 'Resume the recording',
    description: 'Continues a paused recording. Adds the event `recording.resumed`. Tandem extension.',
    body: null,
    control: () => ({ type: 'recording.resume' }),
  });
}

const DIGITS = /^[0-9A-Da-d*#wW]+$/;

const LEG_ID = /^(agent|customer|leg_[0-9a-f-]{36})$/;

/** Requires an admin for supervisor legs. @throws TandemError */
export function requireControlOf(
  call: CallRow,
  { legs, principal }: { legs: readonly LegId[]; principal: Principal },
): void {
  const isOfSupervisor = call.legs.some(({ legId, role }) => role === 'supervisor' && legs.includes(legId));
  if (isOfSupervisor) requireAccess(principal, 'admin');
}

export function legOf(leg: string): LegId {
  if (LEG_ID.test(leg)) return leg;
  throw new TandemError('LEG_NOT_FOUND', 'The call has no such leg. Name `agent`, `customer` or a leg_id of the call.');
}

/** The leg that a role names: agent and customer, or the leg that a transfer put in their place. */
export function legInPlace({ legs }: Pick<CallRow, 'legs'>, leg: LegId): LegId {
  const isRole = leg === 'agent' || leg === 'customer';
  return (isRole && legs.findLast(({ role, state }) => role === leg && state !== 'ended')?.legId) || leg;
}

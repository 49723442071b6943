import { Type } from 'typebox';
import type { SoundSource } from '../../actors/dialer.ts';
import { TandemError } from '../../machines/errors.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { type Principal, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { CallNameSchema, CallParams } from '../schemas/call.ts';
import { REFUSALS, shared, success, successOf } from '../schemas/envelope.ts';
import { legInPlace, legOf, requireControlOf } from './call-control.ts';

const TAGS = ['click-to-call'];

const PlayBody = Type.Object(
  {
    leg: Type.String({ description: 'Leg that hears the sound: `agent`, `customer`, a leg_id, or `both`.' }),
    text: Type.Optional(
      Type.String({ minLength: 1, maxLength: 2000, description: 'Text to speak, plain or SSML. Instead of `url`.' }),
    ),
    url: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 2048,
        description: 'https URL of an audio file of up to 25 MB and 5 minutes. Instead of `text`.',
      }),
    ),
    voice_id: Type.Optional(Type.String({ description: 'Voice that speaks `text`. Default: the usual voice.' })),
    loop: Type.Optional(Type.Boolean({ default: false, description: 'Repeat the sound until it is stopped.' })),
  },
  {
    additionalProperties: false,
    examples: [{ leg: 'both', text: 'This call is recorded.' }],
  },
);

interface CallPlaybackOptions {
  context: HttpContext;
  findCall: (id: string, principal: Principal) => Promise<CallRow>;
}

export function callPlaybackRoutes(app: HttpApp, { context: { dialer }, findCall }: CallPlaybackOptions): void {
  app.post(
    '/dialer/click2call/:id/play',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'playToCall',
        summary: 'Play a text or an audio file to a call',
        description:
          'Plays a sound to one leg, or to the agent and the customer (`both`), over what they hear, which is turned down meanwhile. The response arrives when the sound begins. A sound that is still playing to the same leg ends. Most audio formats are accepted, such as WAV, MP3, Ogg and FLAC; the file is fetched on every request, from public https addresses only and without redirects. A text is billed per character when it begins, like text to speech, as part of `speech_cost_usd`; an audio file is free. Played sounds are not recorded or transcribed. Adds the events `playback.started` and `playback.finished`. Tandem extension.',
        params: CallParams,
        body: PlayBody,
        response: {
          201: successOf(
            Type.Object(
              { playback_id: Type.String({ description: 'Id of the playback, with which it is stopped.' }) },
              { examples: [{ playback_id: 'play_8d2c1f0e-5b7a-4c3d-9e6f-1a2b3c4d5e6f' }] },
            ),
            'The sound is playing.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const { leg, loop = false } = request.body;
      const source = sourceOf(request.body);
      const named = leg === 'both' ? ['agent', 'customer'] : [legOf(leg)];
      const call = await findCall(request.params.id, principal);
      const sound = { source, legs: named.map((each) => legInPlace(call, each)), isLooped: loop };
      requireControlOf(call, { legs: sound.legs, principal });
      const target = { workspaceId: principal.workspaceId, callId: call.callId };
      const { playbackId } = await dialer.play(target, sound);
      return reply.status(201).send(success({ playback_id: playbackId }));
    },
  );

  app.delete(
    '/dialer/click2call/:id/play/:playback_id',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'stopPlayback',
        summary: 'Stop a sound',
        description: 'Stops a sound that is playing. Adds the event `playback.finished`. Tandem extension.',
        params: Type.Object({ id: CallNameSchema, playback_id: Type.String({ description: 'Id of the playback.' }) }),
        response: { 200: successOf(Type.Object({ call: shared('Call') }), 'The call.'), ...REFUSALS },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const { callId } = await findCall(request.params.id, principal);
      const { playback_id: playbackId } = request.params;
      const target = { workspaceId: principal.workspaceId, callId };
      return success({ call: await dialer.control(target, { type: 'play.stop', playbackId }) });
    },
  );
}

/** @throws TandemError VALIDATION_FAILED unless exactly one is given */
function sourceOf({ text, url, voice_id: voiceId }: { text?: string; url?: string; voice_id?: string }): SoundSource {
  if (text !== undefined && url === undefined) return { kind: 'text', text, voiceId: voiceId ?? null };
  if (url !== undefined && text === undefined && voiceId === undefined) return { kind: 'url', url };
  const isVoiceExtra = url !== undefined && text === undefined;
  const path = isVoiceExtra ? 'voice_id' : 'text';
  const message = isVoiceExtra ? 'voice_id needs text: a url has its own sound.' : 'Give either text or url.';
  throw new TandemError('VALIDATION_FAILED', message, { details: [{ path, message }] });
}

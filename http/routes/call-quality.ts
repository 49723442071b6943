import { presentCall } from '../../actors/call-view.ts';
import { qualitySamplesOf } from '../../storage/queries/call-quality.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { type Principal, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { CallParams } from '../schemas/call.ts';
import { CallQualitySchema, presentCallQuality } from '../schemas/call-quality.ts';
import { REFUSALS, success, successOf } from '../schemas/envelope.ts';

interface CallQualityOptions {
  context: HttpContext;
  findCall: (id: string, principal: Principal) => Promise<CallRow>;
}

export function callQualityRoutes(app: HttpApp, { context, findCall }: CallQualityOptions): void {
  app.get(
    '/dialer/click2call/:id/quality',
    {
      config: { access: 'member' },
      schema: {
        tags: ['click-to-call'],
        operationId: 'getCallQuality',
        summary: 'Get the media quality of a call over time',
        description:
          'Returns for each leg what was received of it every 5 seconds: packets, loss, jitter, round trip and the estimated MOS. During the call, samples appear up to 20 seconds late; the last ones appear a second after it ended. A call that ended because its node was lost can lack the last seconds. Samples are deleted after `RETENTION_QUALITY_DAYS`; `quality` of the call has the totals and stays. Tandem extension.',
        params: CallParams,
        response: { 200: successOf(CallQualitySchema, 'The samples so far, by leg.'), ...REFUSALS },
      },
    },
    async (request) => {
      const call = await findCall(request.params.id, principalOf(request));
      const samples = await qualitySamplesOf(context.sql, call.callId);
      return success(presentCallQuality({ callId: call.callId, legs: presentCall(call).legs, samples }));
    },
  );
}

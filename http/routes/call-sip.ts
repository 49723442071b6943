import { Type } from 'typebox';
import { presentCall } from '../../actors/call-view.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { sipMessagesOf } from '../../storage/queries/sip-messages.ts';
import { type Principal, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { CallParams } from '../schemas/call.ts';
import { REFUSALS, responseOf, success } from '../schemas/envelope.ts';
import { presentSipTrace, SipTraceSchema } from '../schemas/sip-message.ts';
import { sipCapture } from '../sip-capture.ts';
import { sipLadder } from '../sip-ladder.ts';

interface CallSipOptions {
  context: HttpContext;
  findCall: (id: string, principal: Principal) => Promise<CallRow>;
}

export function callSipRoutes(app: HttpApp, { context, findCall }: CallSipOptions): void {
  const { sql } = context;

  app.get(
    '/dialer/click2call/:id/sip',
    {
      config: { access: 'admin' },
      exposeHeadRoute: false,
      schema: {
        tags: ['click-to-call'],
        operationId: 'getCallSip',
        summary: 'Get the SIP messages of a call',
        description:
          'Returns the SIP messages of the call so far, with their times, legs and addresses. Passwords, digest responses and media keys are masked. With `Accept: text/plain`, returns a ladder diagram for a terminal. The list is empty if the call was not dialed over SIP, if `SIP_TRACE` left it out, or once `SIP_TRACE_DAYS` have passed. A message can take a second to appear. Admins and owners only. Tandem extension.',
        params: CallParams,
        response: {
          200: responseOf({
            description: 'The messages.',
            content: {
              'application/json': { schema: Type.Object({ success: Type.Literal(true), data: SipTraceSchema }) },
              'text/plain': { schema: Type.String({ examples: [LADDER_EXAMPLE] }) },
            },
          }),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const { callId } = await findCall(request.params.id, principalOf(request));
      const trace = presentSipTrace(callId, await sipMessagesOf(sql, callId));
      reply.header('vary', 'accept');
      if (!prefersText(request.headers.accept)) return success(trace);
      return reply.type('text/plain; charset=utf-8').send(sipLadder(trace));
    },
  );

  app.get(
    '/dialer/click2call/:id/sip.pcapng',
    {
      config: { access: 'admin', sends: ['content-disposition'] },
      exposeHeadRoute: false,
      schema: {
        tags: ['click-to-call'],
        operationId: 'downloadCallSip',
        summary: 'Download the SIP messages of a call as a capture file',
        description:
          'Returns the same messages as `GET /dialer/click2call/{id}/sip` as a pcapng file, which Wireshark opens. Times, addresses and messages are those of the wire; IP headers and TCP sequence numbers are rebuilt. RTP packets are not kept: for each leg the file has an RTCP report (RFC 3550, RFC 3611) with the loss, jitter and MOS that were measured. Admins and owners only. Tandem extension.',
        params: CallParams,
        response: {
          200: responseOf({
            description: 'The capture file.',
            content: {
              [PCAPNG]: { schema: Type.String({ contentMediaType: PCAPNG, examples: ['\n\r\r\n...'] }) },
            },
          }),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const call = await findCall(request.params.id, principalOf(request));
      const file = sipCapture(presentCall(call), await sipMessagesOf(sql, call.callId));
      return reply
        .headers({ 'content-type': PCAPNG, 'content-disposition': `attachment; filename="${call.callId}.pcapng"` })
        .send(file);
    },
  );
}

const PCAPNG = 'application/vnd.tcpdump.pcap';
const LADDER_EXAMPLE = '+0.000  |<------------- INVITE (SDP) -------------|\n';

/** JSON unless the client lists plain text first. */
function prefersText(accept: string | undefined): boolean {
  const types = (accept ?? '')
    .toLowerCase()
    .split(',')
    .map((type) => type.split(';', 1)[0]?.trim());
  const text = types.indexOf('text/plain');
  const json = types.indexOf('application/json');
  return text !== -1 && (json === -1 || text < json);
}

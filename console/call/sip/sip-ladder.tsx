import { VisuallyHidden } from '@mantine/core';
import { type KeyboardEvent, useMemo } from 'react';
import { sipText } from '../../text/call.ts';
import { roleText } from '../../text/call-words.ts';
import type { Call } from '../call-data.ts';
import type { SipMessage } from '../queries.ts';
import './sip-ladder.css';

interface SipLadderProps {
  call: Pick<Call, 'legs'>;
  messages: readonly SipMessage[];
  chosen: number;
  onChoose: (index: number) => void;
}

/** A lifeline for Tandem and for each leg, and an arrow for each message. */
export function SipLadder({ call, messages, chosen, onChoose }: SipLadderProps) {
  const lines = useMemo(() => lifelinesOf(call, messages), [call, messages]);
  const centerOf = (index: number) => ((index + 0.5) / lines.length) * 100;
  const tandem = lines.findIndex(({ leg }) => leg === null);
  return (
    <section className="ladder" aria-label={sipText.title}>
      <div className="ladder-heads">
        <span />
        <div>
          {lines.map(({ leg, label }, index) => (
            <b key={leg ?? ''} style={{ left: `${centerOf(index)}%` }}>
              {label}
            </b>
          ))}
        </div>
      </div>
      <ol onKeyDown={moveFocus}>
        {messages.map((message, index) => {
          const peer = lines.findIndex(({ leg }) => leg === message.leg);
          const [from, to] = [Math.min(peer, tandem), Math.max(peer, tandem)];
          const pointsRight = (message.direction === 'out') === peer > tandem;
          return (
            <li key={`${message.at}-${message.sip_call_id}-${message.cseq}-${message.summary}-${message.offset_ms}`}>
              <button
                type="button"
                aria-current={index === chosen ? 'true' : undefined}
                onClick={() => onChoose(index)}
              >
                <span className="ladder-time tabular">{offset(message.offset_ms)}</span>
                <span className="ladder-lanes">
                  {lines.map(({ leg }, line) => (
                    <i key={leg ?? ''} style={{ left: `${centerOf(line)}%` }} />
                  ))}
                  <span
                    className="ladder-arrow"
                    data-points={pointsRight ? 'right' : 'left'}
                    data-kind={kindOf(message)}
                    style={{ left: `${centerOf(from)}%`, width: `${centerOf(to) - centerOf(from)}%` }}
                  >
                    <span>
                      {message.summary}
                      <VisuallyHidden>{ofLeg(message, lines[peer]?.label ?? message.leg)}</VisuallyHidden>
                      {message.has_sdp && <small>SDP</small>}
                      {message.repeated && <small>{sipText.repeated}</small>}
                    </span>
                  </span>
                </span>
              </button>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

interface Lifeline {
  /** Null: Tandem. */
  leg: string | null;
  label: string;
}

/** The agent at the left, Tandem in the middle, the others at the right. */
function lifelinesOf({ legs }: Pick<Call, 'legs'>, messages: readonly SipMessage[]): Lifeline[] {
  const names = [...new Set(messages.map(({ leg }) => leg))];
  const lines = names.map((leg) => {
    const role =
      legs.find(({ leg_id: id }) => id === leg)?.role ?? (leg === 'agent' || leg === 'customer' ? leg : 'party');
    return { leg, label: roleText[role] };
  });
  const tandem: Lifeline = { leg: null, label: sipText.tandem };
  return [...lines.filter(({ leg }) => leg === 'agent'), tandem, ...lines.filter(({ leg }) => leg !== 'agent')];
}

function ofLeg({ direction }: SipMessage, leg: string): string {
  return direction === 'out' ? sipText.sentTo(leg) : sipText.receivedFrom(leg);
}

function kindOf({ status, method }: SipMessage): string {
  if (status === null) return method === 'BYE' || method === 'CANCEL' ? 'end' : 'request';
  return status >= 400 ? 'refusal' : status >= 200 ? 'success' : 'progress';
}

function offset(ms: number): string {
  return `+${(ms / 1_000).toFixed(3)}`;
}

/** Arrow keys go from message to message. */
function moveFocus(event: KeyboardEvent<HTMLElement>): void {
  const item = (event.target as HTMLElement).closest('li');
  const next = { ArrowDown: item?.nextElementSibling, ArrowUp: item?.previousElementSibling }[event.key];
  const button = next?.querySelector('button');
  if (!button) return;
  event.preventDefault();
  button.focus();
}

import { Text } from '@mantine/core';
import { LegControls } from '../call/actions/leg-controls.tsx';
import { isTalking, type Leg, legOf } from '../call/call-data.ts';
import { partyName } from '../call/party.tsx';
import { legStateText, roleText } from '../text/call-words.ts';
import { Level } from './level.tsx';
import type { LiveEntry } from './live-state.ts';
import { Mos } from './mos.tsx';

interface PartyLineProps {
  entry: LiveEntry;
  party: 'agent' | 'customer';
  mayControl: boolean;
}

/** A party in one line: name, level, quality, mute and hold. */
export function PartyLine({ entry: { call, levels, quality }, party, mayControl }: PartyLineProps) {
  const leg = legOf(call, party);
  const id = leg?.leg_id ?? party;
  const name = roleText[party].toLowerCase();
  const isConnected = leg?.state === 'answered' || leg?.state === 'held';
  return (
    <div className="live-party">
      <Text size="xs" c="dimmed">
        {roleText[party]}
      </Text>
      <Text size="sm" className="tabular" truncate>
        {partyName(call, party)}
      </Text>
      {isConnected ? (
        <>
          <Level party={name} level={levels[id]} />
          <Mos party={name} mos={quality[id]?.mos} />
        </>
      ) : (
        <LegStateText leg={leg} />
      )}
      {leg && mayControl && isTalking(call) ? <LegControls callId={call.call_id} leg={leg} /> : <span />}
    </div>
  );
}

function LegStateText({ leg }: { leg: Leg | undefined }) {
  return (
    <>
      <Text size="xs" c="dimmed">
        {leg && legStateText[leg.state]}
      </Text>
      <span />
    </>
  );
}

import { Spotlight, spotlight } from '@mantine/spotlight';
import { useNavigate } from '@tanstack/react-router';
import { Search } from 'lucide-react';
import { useState } from 'react';
import { paletteText } from '../text/app.ts';
import { PAGES } from './pages.ts';

export const openPalette = spotlight.open;

/** Ctrl-K: go to a page, or find calls. */
export function Palette() {
  const navigate = useNavigate();
  const [query, setQuery] = useState('');
  const wanted = query.trim();
  const pages = PAGES.filter(({ label }) => label.toLowerCase().includes(wanted.toLowerCase()));
  return (
    <Spotlight.Root query={query} onQueryChange={setQuery} shortcut={['mod + K']}>
      <Spotlight.Search
        placeholder={paletteText.placeholder}
        aria-label={paletteText.placeholder}
        leftSection={<Search size={18} aria-hidden />}
      />
      <Spotlight.ActionsList>
        {pages.length > 0 && (
          <Spotlight.ActionsGroup label={paletteText.pages}>
            {pages.map(({ path, label, icon: Icon }) => (
              <Spotlight.Action
                key={path}
                label={label}
                leftSection={<Icon size={18} aria-hidden />}
                onClick={() => navigate({ to: path })}
              />
            ))}
          </Spotlight.ActionsGroup>
        )}
        {wanted !== '' && (
          <Spotlight.ActionsGroup label={paletteText.actions}>
            <Spotlight.Action
              label={paletteText.findCalls(wanted)}
              leftSection={<Search size={18} aria-hidden />}
              onClick={() => navigate({ to: '/calls', search: { q: wanted } as never })}
            />
          </Spotlight.ActionsGroup>
        )}
        {pages.length === 0 && wanted === '' && <Spotlight.Empty>{paletteText.nothing}</Spotlight.Empty>}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  );
}

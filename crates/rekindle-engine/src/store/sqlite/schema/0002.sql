-- Views look for some kinds of events among millions.
CREATE INDEX event_by_kind ON event (kind);

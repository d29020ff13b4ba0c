-- blank_passage --
-- The number stays; hash and vector go.
UPDATE passages SET hash = convert_to('gone:' || row, 'UTF8'), vector = decode(repeat('00', length(vector)), 'hex')
WHERE row = :row;

-- A switch of embedding models replaces the vectors, instead of filling a second set.
DROP TABLE other_turn_passages;
DROP TABLE other_passages;
DROP TABLE other_passage_bits;
DROP TABLE other_memory_vectors;
DROP TABLE other_embedding;
